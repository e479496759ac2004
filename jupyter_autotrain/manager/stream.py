"""Reading one job's `metrics` to its end, whatever lies there and however often a read fails."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_autotrain.core.backend import Chunk
from jupyter_autotrain.manager.frames import Frames, parse

LONGEST_LINE_BYTES = 16 << 20
_PATIENCE_S = 60.0  # after the job's end, for a read that fails
Read = Callable[[int], Chunk]  # the bytes from an offset on


class Stream:
    """A job's metrics from a byte on.

    Attributes:
        offset: Where to read on: the beginning of a line, except within one that is skipped.

    Args:
        offset: Where to begin.
        objective: Name of the objective metric, or "".
    """

    def __init__(self, offset: int, objective: str) -> None:
        self.offset = offset
        self._objective = objective
        self._is_skipping = False
        self._fault = ""
        self._failing_since_s = 0.0
        self._has_told = False

    def take(self, chunk: Chunk, read: Read, now_s: float, tick_s: float) -> Frames:
        """What is new. `chunk` holds the bytes from `offset` on; a line that is longer is read on.

        Args:
            chunk: What has been read.
            read: Reads more.
            now_s: The time since the epoch.
            tick_s: The time for waiting.
        """
        if chunk.fault:
            return self._note_fault(chunk, now_s, tick_s)
        self._fault = ""
        if self._is_skipping:
            return self._skip(chunk.data, now_s)
        data, last = self._whole_line(chunk, read)
        if last.fault:
            return self._note_fault(last, now_s, tick_s)
        frames = parse(data, self.offset, self._objective, now_s)
        if frames.cursor == self.offset and len(data) >= LONGEST_LINE_BYTES:
            self._is_skipping = True
            frames.cursor += len(data)
            text = f"a metric line of more than {LONGEST_LINE_BYTES} bytes was skipped"
            frames.notes.append((now_s, "warning", text, 1))
        self.offset = frames.cursor
        return frames

    def is_read_out(self, frames: Frames, tick_s: float) -> bool:
        """True when, after the job's end, nothing more will come: the last read gave nothing, or always fails."""
        if self._fault:
            return tick_s - self._failing_since_s >= _PATIENCE_S
        return frames.cursor == frames.start

    def _whole_line(self, chunk: Chunk, read: Read) -> tuple[bytes, Chunk]:
        """Read on until there is a line end, nothing more, or too much; gives the bytes and the last read."""
        parts = [chunk.data]
        size = len(chunk.data)
        last = chunk
        while last.data and b"\n" not in last.data and size < LONGEST_LINE_BYTES:
            last = read(self.offset + size)
            parts.append(last.data)
            size += len(last.data)
        return b"".join(parts), last

    def last_note(self, now_s: float) -> list[tuple[float, str, str, int]]:
        """What there is to say when the reading ends: why it could not go to the stream's end."""
        if not self._fault or self._has_told:
            return []
        return [(now_s, "error", f"its metrics could not be read to their end: {self._fault}", 1)]

    def _skip(self, data: bytes, now_s: float) -> Frames:
        """Pass over the rest of a line that is too long."""
        line, newline, rest = data.partition(b"\n")
        self._is_skipping = not newline
        frames = parse(rest, self.offset + len(line) + len(newline), self._objective, now_s)
        frames.start, self.offset = self.offset, frames.cursor
        return frames

    def _note_fault(self, chunk: Chunk, now_s: float, tick_s: float) -> Frames:
        """Say once why nothing can be read. A fault that lasts counts as the stream's end."""
        frames = Frames(self.offset, self.offset)
        if not self._fault:
            self._failing_since_s = tick_s - (_PATIENCE_S if chunk.is_lasting else 0.0)
        if chunk.is_lasting and not self._has_told:
            self._has_told = True
            frames.notes.append((now_s, "error", chunk.fault, 1))
        self._fault = chunk.fault
        return frames
