"""The table shown before submit: every captured name, from where, how it travels, how big, whether it is stale."""

from __future__ import annotations

from jupyter_autotrain.capture.result import Capture
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.spec import CapturedName
from jupyter_autotrain.core.table import Table

_HEAD = ("name", "travels as", "from", "size", "stale")
_ORDER = ("parameter", "builtin", "import", "source", "data", "file")


def table(capture: Capture) -> Table:
    """Return the capture table: a row per name."""
    rows = [_row(entry) for entry in sorted(capture.captured, key=_place)]
    return Table(_HEAD, rows, right=("size",), more="" if rows else "The cell needs nothing of the notebook.")


def _place(entry: CapturedName) -> tuple[int, str]:
    return (_ORDER.index(entry.how) if entry.how in _ORDER else len(_ORDER)), entry.name


def _row(entry: CapturedName) -> tuple[str, str, str, str, str]:
    size = format_bytes(entry.size_bytes) if entry.how in {"data", "file"} else ""
    return entry.name, entry.how, entry.origin, size, entry.stale
