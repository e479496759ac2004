"""The last lines of what a trial prints, in bounded time and space whatever it prints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.views.terminal_text import rendered

LINES: Final = 200
_READ_BYTES: Final = 262_144
_SENT_BYTES: Final = 32_768
_BLOCK_BYTES: Final = 1 << 20
_COUNTED_BYTES: Final = 1 << 26


@dataclass(frozen=True, slots=True)
class RenderedTail:
    """The end of a log: the last lines as a terminal shows them, and in words what precedes them."""

    text: str = ""
    left_out: str = ""


class LogTailReader:
    """A reader of the end of one file, again and again.

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
        """Return the size of the file in bytes; 0 when there is none."""
        try:
            return self._path.lstat().st_size
        except OSError:
            return 0

    def read(self) -> RenderedTail:
        """Return the last lines, or none when there is no such file."""
        try:
            with files.open_regular(self._path.parent, self._path.name) as file:
                return self._read(file)
        except OSError as error:
            return RenderedTail() if files.is_absent(error) else RenderedTail(f"(it cannot be shown: {error.strerror})")

    def _read(self, file: BinaryIO) -> RenderedTail:
        size = file.seek(0, os.SEEK_END)
        begin = max(size - _READ_BYTES, 0)
        file.seek(begin)
        rows = file.read(_READ_BYTES).split(b"\n")
        partial = 1 if begin and len(rows) > 1 else 0
        first = max(partial, len(rows) - self._lines - (rows[-1] == b""))
        lines = list(rendered(row.decode("utf-8", errors="replace") for row in rows[first:]))
        dropped = _lines_over(lines, _SENT_BYTES)
        text_begin = begin + sum(len(row) + 1 for row in rows[: first + dropped])
        return RenderedTail("\n".join(lines[dropped:]), self._left_out(file, text_begin))

    def _left_out(self, file: BinaryIO, text_begin: int) -> str:
        """Return the size of the part before the text: lines, or bytes while not all are counted."""
        if text_begin < self._counted_bytes:
            self._counted_bytes = 0
            self._counted_lines = 0
        file.seek(self._counted_bytes)
        end = min(text_begin, self._counted_bytes + _COUNTED_BYTES)
        while self._counted_bytes < end:
            block = file.read(min(_BLOCK_BYTES, end - self._counted_bytes))
            if not block:
                break
            self._counted_lines += block.count(b"\n")
            self._counted_bytes += len(block)
        if self._counted_bytes < text_begin:
            return format_bytes(text_begin)
        if not text_begin:
            return ""
        plural = "" if self._counted_lines == 1 else "s"
        return f"{self._counted_lines:,} line{plural}"


def _lines_over(lines: Sequence[str], limit_bytes: int) -> int:
    """Return the number of lines to drop from the front so that the rest fits; the last one stays."""
    left_bytes = limit_bytes
    for dropped in range(len(lines) - 1, -1, -1):
        left_bytes -= len(lines[dropped].encode()) + 1
        if left_bytes < 0:
            return min(dropped + 1, len(lines) - 1)
    return 0
