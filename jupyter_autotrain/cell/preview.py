"""The texts that a cell prints before it is sent or instead: the notice, progress, `--check` and `--dry-run`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import clear_output, display

from jupyter_autotrain import capture
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.environment import held_back
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.agent.terminal import printable
from jupyter_autotrain.capture import Capture
from jupyter_autotrain.client.check import check as check_backend
from jupyter_autotrain.client.check import preview
from jupyter_autotrain.client.submission import Draft
from jupyter_autotrain.client.waiting import Progress, in_terminal
from jupyter_autotrain.core.backend import Submission
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import count

_PROVIDED: Final = frozenset({"builtin", "parameter"})
_MAX_DIFFERENCES: Final = 8


@dataclass(frozen=True, slots=True)
class Notice:
    """A list of what travels with a cell, and of what differs from running it here.

    Attributes:
        line: Counts and sizes.
        table: Each name with how it travels.
        differences: The list as text; "" when nothing differs.
    """

    line: str
    table: Table
    differences: str

    def text(self) -> str:
        """Return the line, and what differs below it."""
        return "\n".join(filter(None, [f"{self.line} (all of it: --dry-run)", self.differences]))

    def html(self) -> str:
        """Return the line, which opens to the table and to what differs."""
        differences = f"<pre>{escape(printable(self.differences))}</pre>" if self.differences else ""
        return f"<details><summary>{escape(self.line)}</summary>{self.table.html()}{differences}</details>"


def notice(captured: Capture) -> Notice | None:
    """Return the notice of a capture; None for a cell that needs nothing of the notebook and runs as it does here."""
    names = [entry for entry in captured.captured if entry.how not in _PROVIDED]
    if not names and not captured.differences:
        return None
    size_bytes = sum(entry.size_bytes for entry in names)
    sized = f", {format_bytes(size_bytes)}" if size_bytes else ""
    differing = f"; {count(len(captured.differences), 'difference')}" if captured.differences else ""
    line = f"Travels: {count(len(names), 'name')}{sized}{differing}"
    listed = capture.format_differences(captured.differences, rows=_MAX_DIFFERENCES)
    return Notice(line, capture.table(captured), listed)


_ID = "autotrain-progress"


def progress(shell: InteractiveShell, shown_before: Sequence[Callable[[], None]]) -> Progress:
    """Get a line in the cell's output that leaves nothing in the notebook; in a terminal, a line that is overwritten.

    Args:
        shell: Where the cell runs.
        shown_before: Each shows a part of the cell's output again, which is removed together with the line.
    """
    if not hasattr(shell, "kernel"):
        return in_terminal(sys.stdout)
    shown: list[str] = []

    def show(text: str) -> None:
        content = {"text/plain": text}
        display(content, raw=True, display_id=_ID, update=bool(shown))  # type: ignore[no-untyped-call]  # IPython has no types here
        shown.append(text)

    def clear() -> None:
        clear_output()  # type: ignore[no-untyped-call]  # the same
        for show_again in shown_before:
            show_again()

    return Progress(show, clear)


_MAX_LINES: Final = 80
_KINDS: Final = (("import", "import"), ("source", "definition"), ("data", "variable"), ("file", "file"))
_SIZED: Final = frozenset({"data", "file"})


def check(draft: Draft, home: Home) -> str:
    """Return whether the cell can be sent, what is sent with it, and what differs from running it here.

    Raises:
        BackendUnavailableError: The backend cannot do what the header asks.
    """
    checked = check_backend(draft.spec(), home, afresh=True)
    differences = (
        capture.format_differences(draft.captured.differences) or "Nothing differs from running the cell here."
    )
    sent = f"Valid for backend {checked.spec.backend_names!r}; nothing was sent."
    return "\n".join([sent, _travels(draft), differences, *checked.notes, *notes(draft)]) + "\n"


def dry_run(draft: Draft, home: Home) -> str:
    """Return what would be sent: the capture table, the script, and what the backend would receive."""
    spec = draft.spec()
    rendered = preview(spec, home)
    lines = draft.captured.script.splitlines()
    more = f"\n... {len(lines) - _MAX_LINES} more lines" if len(lines) > _MAX_LINES else ""
    shown = "\n".join(lines[:_MAX_LINES])
    differences = capture.format_differences(draft.captured.differences)
    return (
        f"{capture.table(draft.captured).text()}\n{differences}\n{_data_lines(draft)}\n--- main.py\n{shown}{more}\n\n"
        f"--- {spec.backends[0].profile.name} would start\n{' '.join(rendered.argv)}\n"
        "--- with these variables and no others of yours\n"
        + "".join(f"{key}={value}\n" for key, value in rendered.env.items())
        + _files(rendered)
        + "".join(f"note: {note}\n" for note in (*rendered.notes, *notes(draft)))
        + "\nDry run: nothing was sent.\n"
    )


def _files(rendered: Submission) -> str:
    """Return what the backend would be given to read, such as a job's script or manifests."""
    texts: list[str] = []
    for name, text in rendered.files.items():
        if name != wire.TRIAL_FILE:
            texts.append(f"--- {name}\n{text}\n")
    return "".join(texts)


def _data_lines(draft: Draft) -> str:
    """Return what `data:` names, one line each."""
    lines = []
    for name, entry in draft.header.data.items():
        if entry.url is not None:
            lines.append(f"data.{name}  fetched from {entry.url}, where trials run\n")
        elif entry.path is not None:
            lines.append(f"data.{name}  {entry.path}, which is there already\n")
        elif entry.origin is not None:
            where = entry.origin.address if entry.send else f"{entry.origin.kind} {entry.origin.address}"
            lines.append(f"data.{name}  {where}, fetched to here when it has changed, and sent once per content\n")
        else:
            lines.append(f"data.{name}  {entry.send}, sent once per content\n")
    return "".join(lines)


def _travels(draft: Draft) -> str:
    """Return counts and sizes, in one line."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for entry in draft.captured.captured:
        counts[entry.how] += 1
        sizes[entry.how] += entry.size_bytes
    parts = ["the cell"]
    if draft.header.data:
        parts.append(f"what `data:` names ({', '.join(draft.header.data)}; sent once per content)")
    for how, noun in _KINDS:
        if counts[how]:
            size = f" ({format_bytes(sizes[how])})" if how in _SIZED else ""
            parts.append(count(counts[how], noun) + size)
    return f"Travels: {', '.join(parts)}."


def notes(draft: Draft) -> Iterator[str]:
    """Yield what the user should know of a cell, such as variables that are held back, a line each."""
    yield from draft.captured.notes
    header = draft.header
    named = {*header.secrets, *header.env}
    names = ", ".join(name for name in held_back(draft.environ, header.pass_env) if name not in named)
    if names:
        yield f"Not passed on, because it looks like a secret: {names}. To pass it, masked: `secrets: [{names}]`."
