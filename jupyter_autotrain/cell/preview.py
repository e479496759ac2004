"""What is printed instead of sending a cell: `--check` and `--dry-run`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from jupyter_autotrain import capture
from jupyter_autotrain.cell.submission import Draft
from jupyter_autotrain.client.check import check as check_backend
from jupyter_autotrain.client.check import preview
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Submission
from jupyter_autotrain.core.environment import held_back
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.text_format import count

_MAX_LINES: Final = 80
_KINDS: Final = (("import", "import"), ("source", "definition"), ("data", "variable"), ("file", "file"))
_SIZED: Final = frozenset({"data", "file"})


def check(draft: Draft, home: Home) -> str:
    """Whether the cell can be sent, what is sent with it, and what differs from running it here.

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
    """What would be sent: the capture table, the script, and what the backend would receive."""
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
    """What the backend would be given to read, such as a job's script or manifests."""
    texts = [f"--- {name}\n{text}\n" for name, text in rendered.files.items() if name != wire.TRIAL_FILE]
    return "".join(texts)


def _data_lines(draft: Draft) -> str:
    """What `data:` names, one line each."""
    lines = []
    for name, entry in draft.parsed.header.data.items():
        if entry.url is not None:
            lines.append(f"data.{name}  fetched from {entry.url}, where trials run\n")
        elif entry.path is not None:
            lines.append(f"data.{name}  {entry.path}, which is there already\n")
        else:
            lines.append(f"data.{name}  {entry.send}, sent once per content\n")
    return "".join(lines)


def _travels(draft: Draft) -> str:
    """Counts and sizes, in one line."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for entry in draft.captured.captured:
        counts[entry.how] += 1
        sizes[entry.how] += entry.size_bytes
    parts = ["the cell"]
    if draft.parsed.header.data:
        parts.append(f"what `data:` names ({', '.join(draft.parsed.header.data)}; sent once per content)")
    for how, noun in _KINDS:
        if counts[how]:
            size = f" ({format_bytes(sizes[how])})" if how in _SIZED else ""
            parts.append(count(counts[how], noun) + size)
    return f"Travels: {', '.join(parts)}."


def notes(draft: Draft) -> Iterator[str]:
    """Yield what the user should know of a cell, such as variables that are held back, a line each."""
    yield from draft.captured.notes
    header = draft.parsed.header
    named = {*header.secrets, *header.env}
    names = ", ".join(name for name in held_back(draft.environ, header.pass_env) if name not in named)
    if names:
        yield f"Not passed on, because it looks like a secret: {names}. To pass it, masked: `secrets: [{names}]`."
