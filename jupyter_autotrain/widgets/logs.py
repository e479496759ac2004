"""The last lines of what a trial prints, in bounded time and space whatever it prints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from jupyter_autotrain.core import files

LINES: Final = 200
_BYTES: Final = 32_768


def tail(path: Path, lines: int = LINES) -> str:
    """The last lines of a file, read from its end; "" when there is no such file.

    A carriage return within a line keeps only what a terminal would show after it (progress bars).
    """
    try:
        with files.open_regular(path.parent, path.name) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _BYTES, 0))
            data = file.read(_BYTES)
    except OSError as error:
        return "" if files.is_absent(error) else f"(it cannot be shown: {error.strerror})"
    rows = data.decode("utf-8", errors="replace").split("\n")
    whole = rows[1:] if size > _BYTES and len(rows) > 1 else rows
    kept = whole[-lines - 1 :] if whole[-1] == "" else whole[-lines:]
    return "\n".join(row.rstrip("\r").rsplit("\r", 1)[-1] for row in kept)


def size(path: Path) -> int:
    """The size of a file in bytes; 0 when there is none."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0
