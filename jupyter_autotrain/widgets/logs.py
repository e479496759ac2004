"""The last lines of what a trial prints, in bounded time and space whatever it prints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from jupyter_autotrain.core import files
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.widgets import screen

LINES: Final = 200
_READ_BYTES: Final = 262_144
_SENT_BYTES: Final = 32_768
_BLOCK_BYTES: Final = 1 << 20
_COUNTED_BYTES: Final = 1 << 26


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a log: the last lines as a terminal shows them, and in words what stands before them."""

    text: str = ""
    left_out: str = ""


class LogTail:
    """Reads the end of one file again and again.

    Lines before the end are counted once, and at most 64 MB of them per call.

    Args:
        path: The file.
        lines: At most so many lines.
    """

    def __init__(self, path: Path, lines: int = LINES) -> None:
        self._path = path
        self._lines = lines
        self._counted_bytes = 0
        self._counted_lines = 0

    def size(self) -> int:
        """The size of the file in bytes; 0 when there is none."""
        try:
            return self._path.lstat().st_size
        except OSError:
            return 0

    def read(self) -> Tail:
        """The last lines; empty when there is no such file."""
        try:
            with files.open_regular(self._path.parent, self._path.name) as file:
                return self._read(file)
        except OSError as error:
            return Tail() if files.is_absent(error) else Tail(f"(it cannot be shown: {error.strerror})")

    def _read(self, file: BinaryIO) -> Tail:
        size = file.seek(0, os.SEEK_END)
        begin = max(size - _READ_BYTES, 0)
        file.seek(begin)
        rows = file.read(_READ_BYTES).split(b"\n")
        partial = 1 if begin and len(rows) > 1 else 0
        first = max(partial, len(rows) - self._lines - (rows[-1] == b""))
        shown = list(screen.shown(row.decode("utf-8", errors="replace") for row in rows[first:]))
        over = _over(shown, _SENT_BYTES)
        cut = begin + sum(len(row) + 1 for row in rows[: first + over])
        return Tail("\n".join(shown[over:]), self._left_out(file, cut))

    def _left_out(self, file: BinaryIO, cut: int) -> str:
        if cut < self._counted_bytes:
            self._counted_bytes = 0
            self._counted_lines = 0
        file.seek(self._counted_bytes)
        end = min(cut, self._counted_bytes + _COUNTED_BYTES)
        while self._counted_bytes < end:
            block = file.read(min(_BLOCK_BYTES, end - self._counted_bytes))
            if not block:
                break
            self._counted_lines += block.count(b"\n")
            self._counted_bytes += len(block)
        if self._counted_bytes < cut:
            return format_bytes(cut)
        lines = self._counted_lines
        return f"{lines:,} line{'' if lines == 1 else 's'}" if cut else ""


def _over(lines: Sequence[str], limit_bytes: int) -> int:
    """How many lines go from the front so that the rest fits; the last one stays."""
    room = limit_bytes
    for over in range(len(lines) - 1, -1, -1):
        room -= len(lines[over].encode()) + 1
        if room < 0:
            return min(over + 1, len(lines) - 1)
    return 0
