"""The output of a trial, read in bounded memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.errors import AutotrainError

LIMIT_BYTES: Final = 16_000_000
_BLOCK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of a stream.

    Attributes:
        text: The last lines, or the end of a line that is longer than the limit.
        lines_before: How many lines precede the text.
        end_bytes: The offset after the text, where following continues.
    """

    text: str = ""
    lines_before: int = 0
    end_bytes: int = 0


def read_tail(directory: Path, stream: str, lines: int, limit_bytes: int = LIMIT_BYTES) -> LogTail:
    """Return the last lines that a trial printed so far; holds at most `limit_bytes` of the stream in memory.

    Args:
        directory: The directory of the trial's attempt.
        stream: `stdout` or `stderr`.
        lines: At most so many lines.
        limit_bytes: At most so many bytes.

    Raises:
        AutotrainError: There is no such stream.
    """
    file = _open(directory, stream)
    if file is None:
        return LogTail()
    with file:
        end = file.seek(0, 2)
        begin = _begin_of_tail(file, end, lines, limit_bytes)
        before = sum(block.count(b"\n") for block in _blocks(file, 0, begin))
        data = b"".join(_blocks(file, begin, end))
    return LogTail(data.decode("utf-8", errors="replace"), before, end)


def read_text(directory: Path, stream: str, limit_bytes: int | None) -> str:
    """All that a trial printed so far, or its last `limit_bytes` below a line that says how much was left out.

    Raises:
        AutotrainError: There is no such stream.
    """
    file = _open(directory, stream)
    if file is None:
        return ""
    with file:
        end = file.seek(0, 2)
        begin = 0 if limit_bytes is None else max(end - limit_bytes, 0)
        text = b"".join(_blocks(file, begin, end)).decode("utf-8", errors="replace")
    left_out = f"... {format_bytes(begin)} before this (limit_bytes=None gives all)\n" if begin else ""
    return left_out + text


class LogFollower:
    """Reads what a stream gained since the last call, whole characters only.

    Args:
        directory: The directory of the trial's attempt.
        stream: `stdout` or `stderr`.
        begin_bytes: Where to begin.
    """

    def __init__(self, directory: Path, stream: str, begin_bytes: int) -> None:
        self._directory = directory
        self._stream = stream
        self._next_bytes = begin_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def read(self) -> Iterator[str]:
        """Yield the new text, in pieces of bounded size."""
        file = _open(self._directory, self._stream)
        if file is None:
            return
        with file:
            for block in _blocks(file, self._next_bytes, file.seek(0, 2)):
                self._next_bytes += len(block)
                yield self._decoder.decode(block)


def _open(directory: Path, stream: str) -> BinaryIO | None:
    if stream != wire.LAUNCHER_LOG and wire.base_of_stream(stream) not in wire.STREAMS:
        known = ", ".join((*wire.STREAMS, wire.LAUNCHER_LOG))
        raise AutotrainError(f"There is no stream {stream!r}.", f"Expected one of: {known}.", "Take stdout or stderr.")
    try:
        return files.open_regular(directory, stream)
    except OSError as error:
        if files.is_absent(error):
            return None
        raise AutotrainError(
            f"The {stream} of the trial in {directory} cannot be read: {error.strerror}.",
            "The regular file that was there when the trial began.",
            "Take the other stream, or ask '%autotrain why'.",
        ) from error


def _begin_of_tail(file: BinaryIO, end: int, lines: int, limit_bytes: int) -> int:
    """Return the offset where the last lines begin; the newline at the very end closes a line, it begins none."""
    least = max(end - limit_bytes, 0)
    missing = lines
    begin = max(end - 1, 0)
    while missing > 0 and begin > least:
        block_begin = max(begin - _BLOCK_BYTES, least)
        block = b"".join(_blocks(file, block_begin, begin))
        while missing > 0 and (found := block.rfind(b"\n")) >= 0:
            block, missing = block[:found], missing - 1
            begin = block_begin + found + 1
        if missing > 0:
            begin = block_begin
    return end if lines <= 0 else begin


def _blocks(file: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    file.seek(begin)
    left = end - begin
    while left > 0:
        block = file.read(min(_BLOCK_BYTES, left))
        if not block:
            return
        left -= len(block)
        yield block
