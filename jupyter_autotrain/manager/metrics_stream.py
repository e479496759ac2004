"""Reading one job's `metrics` to its end, whatever lies there and however often a read fails."""

from __future__ import annotations

from jupyter_autotrain.core.backend import Chunk
from jupyter_autotrain.manager.frames import Frames, parse

LONGEST_LINE_BYTES = 16 << 20
_SHARE_BYTES = 64 << 10  # some milliseconds of work
_RETRY_S = 60.0  # after the job's end, for a read that fails


class MetricsStream:
    """A job's metrics from a byte on.

    Attributes:
        offset: Up to where all has been taken: the beginning of a line, except within one that is skipped.

    Args:
        offset: Where to begin.
        objective: Name of the objective metric, or "".
    """

    def __init__(self, offset: int, objective: str) -> None:
        self.offset = offset
        self._objective = objective
        self._partial = b""  # what was read from `offset` on and is not taken yet
        self._is_skipping = False
        self._fault = ""
        self._failing_since_s = 0.0
        self._is_noted = False

    @property
    def next_offset(self) -> int:
        """Where to read on."""
        return self.offset + len(self._partial)

    @property
    def has_lines(self) -> bool:
        """True when whole lines have been read that were not taken yet."""
        return b"\n" in self._partial

    def take(self, chunk: Chunk, now_s: float, tick_s: float) -> Frames | None:
        """A share of what is new; None when only a part of a line has come, and more may lie at `next_offset` already.

        Args:
            chunk: What has been read from `next_offset` on.
            now_s: The time since the epoch.
            tick_s: The time for waiting.
        """
        if chunk.fault:
            return self._note_fault(chunk, now_s, tick_s)
        self._fault = ""
        start = self.offset
        self._partial += self._pass_over(chunk.data) if self._is_skipping else chunk.data
        lines = self._share()
        is_too_long = not lines and len(self._partial) >= LONGEST_LINE_BYTES
        if chunk.data and not lines and not is_too_long and not self._is_skipping:
            return None
        frames = parse(lines, self.offset, self._objective, now_s)
        frames.start = start
        self._partial = self._partial[len(lines) :]
        if is_too_long:
            self._is_skipping = True
            frames.cursor = self.next_offset
            self._partial = b""
            text = f"a metric line of more than {LONGEST_LINE_BYTES} bytes was skipped"
            frames.notes.append((now_s, "warning", text, 1))
        self.offset = frames.cursor
        return frames

    def _share(self) -> bytes:
        """The whole lines that are taken now: not so many that other streams would wait, and at least one."""
        end = self._partial.rfind(b"\n", 0, _SHARE_BYTES)
        return self._partial[: (self._partial.find(b"\n") if end < 0 else end) + 1]

    def _pass_over(self, data: bytes) -> bytes:
        """Drop the rest of a line that is too long; gives what follows it."""
        line, newline, rest = data.partition(b"\n")
        self._is_skipping = not newline
        self.offset += len(line) + len(newline)
        return rest

    def is_read_out(self, frames: Frames, tick_s: float) -> bool:
        """True when, after the job's end, nothing more will come: the last read gave nothing, or always fails."""
        if self._fault:
            return tick_s - self._failing_since_s >= _RETRY_S
        return frames.cursor == frames.start

    def last_note(self, now_s: float) -> list[tuple[float, str, str, int]]:
        """What there is to say when the reading ends: why it could not go to the stream's end."""
        if not self._fault or self._is_noted:
            return []
        return [(now_s, "error", f"its metrics could not be read to their end: {self._fault}", 1)]

    def _note_fault(self, chunk: Chunk, now_s: float, tick_s: float) -> Frames:
        """Say once why nothing can be read. A fault that lasts counts as the stream's end."""
        frames = Frames(self.offset, self.offset)
        if not self._fault:
            self._failing_since_s = tick_s - (_RETRY_S if chunk.is_lasting else 0.0)
        if chunk.is_lasting and not self._is_noted:
            self._is_noted = True
            frames.notes.append((now_s, "error", chunk.fault, 1))
        self._fault = chunk.fault
        return frames
