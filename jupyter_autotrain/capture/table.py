"""The table shown before submit: every captured name, from where, how it travels, how big, whether it is stale."""

from __future__ import annotations

from jupyter_autotrain.capture.result import Capture
from jupyter_autotrain.capture.sizes import human
from jupyter_autotrain.core.spec import CapturedName

_HEAD = ("name", "travels as", "from", "size", "stale")
_ORDER = ("parameter", "builtin", "import", "source", "data", "file")


def table(capture: Capture) -> str:
    """The capture table as aligned text; one line per name."""
    rows = [_HEAD, *map(_row, sorted(capture.captured, key=_place))]
    if len(rows) == 1:
        return "The cell needs nothing of the notebook."
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return "\n".join(_line(row, widths) for row in rows)


def _place(entry: CapturedName) -> tuple[int, str]:
    return (_ORDER.index(entry.how) if entry.how in _ORDER else len(_ORDER)), entry.name


def _row(entry: CapturedName) -> tuple[str, str, str, str, str]:
    size = human(entry.size_bytes) if entry.how in {"data", "file"} else ""
    return entry.name, entry.how, entry.origin, size, entry.stale


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [text.rjust(width) if column == 3 else text.ljust(width) for column, (text, width) in
             enumerate(zip(row, widths, strict=True))]  # fmt: skip
    return "  ".join(cells).rstrip()
