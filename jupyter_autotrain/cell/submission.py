"""From the text of a cell to a running experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain import backends, capture, header
from jupyter_autotrain.cell import notebook
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.check import check, preview
from jupyter_autotrain.client.rerun import before_rerun
from jupyter_autotrain.client.send import send
from jupyter_autotrain.core.environment import held_back
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.origin import Origin
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.verbs import Wish

_LIMITS: Final = capture.Limits()
_MOST_ROWS: Final = 12
_MOST_DIFFERENCES: Final = 8


@dataclass(frozen=True, slots=True)
class Draft:
    """A cell that was read and captured, not yet sent."""

    parsed: header.ParsedCell
    captured: capture.Capture
    name: str
    cwd: Path
    environ: Mapping[str, str]
    origin: Origin

    def spec(self, bundle: Bundle) -> ExperimentSpec:
        """The experiment this cell asks for, with its code lying in `bundle`."""
        header = self.parsed.header
        spec = header.to_spec(bundle=bundle, name=self.name, cwd=str(self.cwd), environ=self.environ)
        return replace(spec, origin=self.origin)


def read(shell: InteractiveShell, line: str, cell: str, *, cwd: Path, environ: Mapping[str, str]) -> Draft:
    """Read the header and capture what the cell needs; nothing is stored.

    Raises:
        HeaderError: With all faults of the header at once.
        CaptureError: When something the cell needs cannot travel, or nothing reports its objective.
        ShipError: When the files are too many or too big.
    """
    parsed = header.parse_cell(line, cell, header.Context(cwd, environ, backends.names()))
    ship = parsed.header.ship
    captured = capture.capture(
        parsed.code,
        notebook.namespace(shell),
        notebook.executed_cells(shell),
        parameters=frozenset(parsed.header.search),
        ship=ship.patterns,
        cwd=cwd,
        limits=replace(_LIMITS, files=ship.limits.files, file_bytes=ship.limits.size),
        first_line=parsed.code_line,
        not_secrets=parsed.header.not_secrets,
        seed=parsed.header.seed,
    )
    capture.check_reports(captured.reports, parsed.header.objective.metric if parsed.header.objective else "")
    origin = notebook.origin(shell, environ)
    return Draft(parsed, captured, parsed.header.name or notebook.name(origin), cwd, environ, origin)


@dataclass(frozen=True, slots=True)
class Submitted:
    """An experiment that was sent, and the earlier run of its cell that goes on beside it."""

    experiment: Experiment
    earlier: Experiment | None


def submit(draft: Draft, home: Home, say: Callable[[str], object], ask: Callable[[str], str]) -> Submitted:
    """Send a draft; when this returns, the experiment is on disk.

    Args:
        draft: What is sent.
        home: Where to keep it.
        say: Prints what becomes of an earlier run of the cell.
        ask: Asks what shall become of it.

    Raises:
        StoreError: When it cannot be made durable; then nothing was started.
        BackendUnavailableError: When the chosen place cannot do it.
    """
    spec = draft.spec(Bundle())
    check(spec, home)
    earlier = before_rerun(home, spec, draft.environ, draft.parsed.header.on_rerun, say, ask)
    experiment = send(home, spec, lambda folder: capture.write_bundle(draft.captured, folder), draft.environ)
    return Submitted(experiment, earlier)


def notice(draft: Draft) -> str:
    """What travels with the cell, as told before it is sent: the capture table, cut to a few rows; or nothing."""
    differences = capture.told(draft.captured.differences, rows=_MOST_DIFFERENCES)
    return "\n".join(part for part in (_captured(draft), differences, *draft.captured.notes, _held_back(draft)) if part)


def _captured(draft: Draft) -> str:
    if all(entry.how in {"builtin", "parameter"} for entry in draft.captured.captured):
        return ""
    rows = capture.table(draft.captured).splitlines()
    more = len(rows) - 1 - _MOST_ROWS
    return "\n".join(
        [*rows[: _MOST_ROWS + 1], *([f"... and {more} more (all of them: --dry-run)"] if more > 0 else [])]
    )


def _held_back(draft: Draft) -> str:
    asked = draft.parsed.header
    named = {*asked.secrets, *asked.env}
    names = ", ".join(name for name in held_back(draft.environ, asked.pass_env) if name not in named)
    if not names:
        return ""
    return f"Not passed on, because it looks like a secret: {names}. To pass it, masked: `secrets: [{names}]`."


def split_wish(draft: Draft) -> Wish | None:
    """What the header's `parallel:` asks to be planned; nothing without one."""
    section = draft.parsed.header.parallel
    if section is None:
        return None
    return Wish(section.model, section.inputs, section.cluster, section.mode, section.search, section.memory_limit)


def dry_run(draft: Draft, home: Home) -> str:
    """What would be sent: the capture table, the script, and what the backend would receive."""
    rendered = preview(draft.spec(Bundle()), home)
    script = draft.captured.script
    shown = "\n".join(script.splitlines()[:80])
    more = f"\n... {len(script.splitlines()) - 80} more lines" if len(script.splitlines()) > 80 else ""
    differences = capture.told(draft.captured.differences)
    return (
        f"{capture.table(draft.captured)}\n{differences}\n\n--- main.py\n{shown}{more}\n\n"
        f"--- {draft.parsed.header.backend} would start\n{' '.join(rendered.argv)}\n"
        "--- with these variables and no others of yours\n"
        + "".join(f"{key}={value}\n" for key, value in rendered.env.items())
        + "".join(
            f"note: {note}\n" for note in (*draft.captured.notes, *rendered.notes, *filter(None, [_held_back(draft)]))
        )
        + "\nDry run: nothing was sent.\n"
    )
