"""Parts of what a trial has printed: by byte offsets, as a follower asks again and again, and its last lines.

Time and space are bounded, whatever it prints.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.views.terminal_text import rendered

LINES: Final = 200
_READ_BYTES: Final = 262_144
_SENT_BYTES: Final = 32_768
_BLOCK_BYTES: Final = 1 << 20
_COUNTED_BYTES: Final = 1 << 26

MOST_BYTES: Final = 1 << 20
_LONGEST_CHARACTER_BYTES: Final = 4
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_.@-]+")


def log_json(directory: Path, stream: str, begin_bytes: int | None, most_bytes: int) -> JsonObject:
    """Return the text of a stream from an offset on, whole characters only.

    Args:
        directory: The directory of the trial's attempt.
        stream: The name of the stream; checked by the caller.
        begin_bytes: The offset; None gives the end of the stream, from the begin of a line where there is one.
        most_bytes: At most so many bytes.

    Returns:
        `text`, `begin_bytes`, `end_bytes` (where the next request begins) and `size_bytes` of the stream now. A begin
        beyond the end is the end.

    Raises:
        OSError: Something lies there that is no regular file.
    """
    try:
        file = files.open_regular(directory, stream)
    except OSError as error:
        if files.is_absent(error):
            return {"text": "", "begin_bytes": 0, "end_bytes": 0, "size_bytes": 0}
        raise
    with file:
        size_bytes = file.seek(0, os.SEEK_END)
        begin = max(size_bytes - most_bytes, 0) if begin_bytes is None else min(begin_bytes, size_bytes)
        file.seek(begin)
        data = file.read(most_bytes)
    if begin_bytes is None and begin:
        data = _from_line_begin(data)
        begin = size_bytes - len(data)
    data = _whole_characters(data)
    text = data.decode("utf-8", errors="replace")
    return {"text": text, "begin_bytes": begin, "end_bytes": begin + len(data), "size_bytes": size_bytes}


def file_name(label: str, trial: int, attempt: int, stream: str) -> str:
    """Return the file name of a whole log: `digits-trial-3-stdout.txt`."""
    again = f"-attempt-{attempt}" if attempt > 1 else ""
    return f"{_NOT_IN_A_NAME.sub('_', label)}-trial-{trial}{again}-{stream}.txt"


def _from_line_begin(data: bytes) -> bytes:
    newline = data.find(b"\n")
    return data[newline + 1 :] if 0 <= newline < len(data) - 1 else data


def _whole_characters(data: bytes) -> bytes:
    """Return the data up to its last whole character.

    The rest of a character at its end has not been written or read yet.
    """
    for length in range(1, min(_LONGEST_CHARACTER_BYTES, len(data) + 1)):
        last = data[-length]
        if last < 0x80:
            return data
        if last >= 0xC0:
            needed = 2 + (last >= 0xE0) + (last >= 0xF0)
            return data if length >= needed or length == len(data) else data[:-length]
    return data


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
