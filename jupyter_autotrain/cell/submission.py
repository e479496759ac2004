"""From the text of a cell to a running experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain import backends, capture, header
from jupyter_autotrain.cell import notebook
from jupyter_autotrain.client import Experiment, data_files
from jupyter_autotrain.client.check import check
from jupyter_autotrain.client.patience import Patience
from jupyter_autotrain.client.progress import Progress
from jupyter_autotrain.client.python_environment import with_requirements
from jupyter_autotrain.client.rerun import Dialogue, before_rerun
from jupyter_autotrain.client.send import send
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.origin import Origin
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.verbs import PlanRequest

if TYPE_CHECKING:
    from jupyter_autotrain.parallel.plan import Plan

_LIMITS: Final = capture.CaptureLimits()
_GRAPH: Final = frozenset({"groups", "nodes", "edges", "tensors", "timeline"})


@dataclass(frozen=True, slots=True)
class Draft:
    """A cell that is read and captured, not yet sent."""

    parsed: header.ParsedCell
    captured: capture.Capture
    name: str
    cwd: Path
    environ: Mapping[str, str]
    origin: Origin

    def spec(self) -> ExperimentSpec:
        """The spec of the experiment; its bundle is not written yet."""
        header = self.parsed.header
        spec = header.to_spec(bundle=self.captured.bundle, name=self.name, environ=self.environ)
        return with_requirements(replace(spec, origin=self.origin), self.cwd)


def read(
    shell: InteractiveShell,
    line: str,
    cell: str,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    progress: Callable[[int], object] | None = None,
) -> Draft:
    """Read the header and capture what the cell needs; nothing is stored.

    Args:
        shell: The shell of the notebook.
        line: The rest of the line after `%%autotrain`.
        cell: The lines below.
        cwd: The notebook's folder.
        environ: The environment.
        progress: Called with the bytes of data captured so far.

    Raises:
        HeaderError: With all faults of the header.
        CaptureError: Something the cell needs cannot be sent, or nothing reports its objective.
        ShipError: The files are too many or too big.
    """
    parsed = header.parse_cell(line, cell, backends.header_context(cwd, environ))
    ship = parsed.header.ship
    captured = capture.capture(
        parsed.code,
        notebook.namespace(shell, parsed.code),
        notebook.executed_cells(shell),
        parameters=frozenset(parsed.header.search),
        ship=ship.patterns,
        cwd=cwd,
        limits=replace(_LIMITS, files=ship.limits.files, file_bytes=ship.limits.size),
        first_line=parsed.code_line,
        not_secrets=parsed.header.not_secrets,
        returns=parsed.header.returns,
        progress=progress,
        seed=parsed.header.seed,
        trials=parsed.header.trial_count,
        variables=parsed.header.variables,
        data=parsed.header.data_paths,
    )
    capture.check_reports(captured.reports, parsed.header.objective.metric if parsed.header.objective else "")
    origin = notebook.origin(shell, environ)
    return Draft(parsed, captured, parsed.header.name or notebook.name(origin), cwd, environ, origin)


@dataclass(frozen=True, slots=True)
class CellSubmission:
    """A submitted experiment, and an earlier run of its cell that still runs."""

    experiment: Experiment
    earlier: Experiment | None


def submit(
    draft: Draft,
    home: Home,
    say: Callable[[str], object],
    ask: Callable[[str], str],
    progress: Progress,
    plan: JsonObject | None = None,
) -> CellSubmission:
    """Send a draft; when this returns, the experiment is on disk.

    Args:
        draft: The cell.
        home: Where to keep it.
        say: Prints what is wrong with a backend, and what happens to an earlier run of the cell.
        ask: Asks the user whether to stop it.
        progress: Shows how much has been written.
        plan: What `kept_plan` gives; kept with the experiment.

    Raises:
        StoreError: It cannot be stored; then nothing was started.
        BackendUnavailableError: The backend cannot run it.
    """
    patience = Patience()
    checked = check(draft.spec(), home, patience=patience)
    spec = checked.spec
    for note in checked.notes:
        say(f"{note}\n")
    earlier = before_rerun(home, spec, draft.environ, draft.parsed.header.on_rerun, Dialogue(say, ask), patience)
    with progress:
        spec, data = data_files.read(home, spec, draft.cwd, progress)
        experiment = send(
            home, spec, lambda folder: _write_bundle(draft, folder, progress.written, plan), draft.environ, data
        )
    return CellSubmission(experiment, earlier)


def _write_bundle(
    draft: Draft, folder: Path, progress: Callable[[int, int], object], plan: JsonObject | None
) -> Bundle:
    return capture.write_bundle(draft.captured, folder, progress, cwd=str(draft.cwd), plan=plan)


def kept_plan(plan: Plan) -> JsonObject:
    """What is kept of a plan: figures, ways beside it and code; not the graph, which grows with the model."""
    return {name: value for name, value in plan.view().items() if name not in _GRAPH}


def plan_request(draft: Draft) -> PlanRequest | None:
    """The plan that the header's `parallel:` describes; None without one."""
    section = draft.parsed.header.parallel
    if section is None:
        return None
    return PlanRequest(
        section.model, section.inputs, section.cluster, section.mode, section.search, section.memory_limit
    )
