"""One job's `metrics` stream: read to its end, whatever lies there, and turned into rows of the store.

From bytes of a trial's `metrics` stream to rows of the store. Only whole lines are taken; a line that is still being
written stays for the next read. So the cursor always stands at the beginning of a line, and whoever reads on from it
neither loses nor doubles a point. A trial's code can write anything there: what is no frame costs its own line, and a
note.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.core.backend import Chunk

_MOST_STEP = 1 << 63  # what the store can hold
_MOST_TIMES = _MOST_STEP - 1


@dataclass(slots=True)
class Frames:
    """A part of the stream; it begins at byte `start`, and `cursor` is the byte after the last whole line.

    `points` are (name, step, time_s, value), a value of None being NaN; `notes` are (time_s, level, text, count).
    `gpus_asked` is the last word of a session on its GPUs: which turn, and whether it wants them.
    `objective_seen` is true when the objective was reported at all.
    """

    start: int
    cursor: int
    points: list[tuple[str, int, float, float | None]] = field(default_factory=list)
    notes: list[tuple[float, str, str, int]] = field(default_factory=list)
    objective_seen: bool = False
    gpus_asked: tuple[int, bool] | None = None

    @property
    def is_news(self) -> bool:
        """True when there is something to keep."""
        return self.cursor > self.start or bool(self.notes)


def parse(data: bytes, offset: int, objective: str, now_s: float) -> Frames:
    """Read the whole lines of `data`, which begins at byte `offset` of the stream.

    Args:
        data: Bytes of the stream.
        offset: Where they begin; the beginning of a line.
        objective: Name of the objective metric, or "".
        now_s: The time to give to notes about unreadable lines.
    """
    whole, newline, _ = data.rpartition(b"\n")
    frames = Frames(offset, offset + len(whole) + len(newline))
    unreadable = []
    for line in whole.splitlines():
        try:
            _take(frames, files.parse_json(line), objective)
        except (ValueError, TypeError, OverflowError):
            unreadable.append(line)
    if unreadable:
        text = f"an unreadable metric line was skipped: {unreadable[0][:80]!r}"
        frames.notes.insert(0, (now_s, "warning", text, len(unreadable)))
    return frames


def _take(frames: Frames, frame: object, objective: str) -> None:
    """Add the content of one line; all of it or nothing.

    Raises:
        ValueError, TypeError, OverflowError: It is no frame, or one that cannot be kept.
    """
    match frame:
        case ["m", int(step), float(time_s) | int(time_s), dict(values)] if abs(step) < _MOST_STEP:
            when = _finite(time_s)
            frames.points += [(_name(name), step, when, _value(value)) for name, value in values.items()]
            frames.objective_seen |= objective in values
        case ["g", int(turn), bool(wanted)]:
            frames.gpus_asked = (turn, wanted)
        case ["n", float(time_s) | int(time_s), str(level), str(text)]:
            frames.notes.append((_finite(time_s), level[: wire.LONGEST_NAME], _storable(text), 1))
        case ["n", float(time_s) | int(time_s), str(level), str(text), int(times)]:
            shown = _storable(text)
            frames.notes.append((_finite(time_s), level[: wire.LONGEST_NAME], shown, min(max(times, 1), _MOST_TIMES)))
        case ["r", int(), float() | int(), dict(values), str()]:  # its supervisor adds the reduced value
            frames.objective_seen |= objective in values
        case ["v", int(version)]:
            if version != wire.VERSION:
                text = f"the trial writes metrics of version {version}; this manager reads version {wire.VERSION}"
                frames.notes.append((0.0, "error", text, 1))
        case _:
            raise ValueError


def _value(value: object) -> float | None:
    return None if value is None else _finite(value)


def _finite(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _storable(text: str) -> str:
    """Return the text without half pairs of UTF-16."""
    return text.encode(errors="replace").decode()


def _name(name: str) -> str:
    name.encode()  # half a pair of UTF-16 cannot be stored
    if len(name) > wire.LONGEST_NAME:
        raise ValueError
    return name


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
        """Return a share of what is new.

        None when only a part of a line has come, and more may lie at `next_offset` already.

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
        """Return the whole lines that are taken now: not so many that other streams would wait, and at least one."""
        end = self._partial.rfind(b"\n", 0, _SHARE_BYTES)
        return self._partial[: (self._partial.find(b"\n") if end < 0 else end) + 1]

    def _pass_over(self, data: bytes) -> bytes:
        """Drop the rest of a line that is too long; gives what follows it."""
        line, newline, rest = data.partition(b"\n")
        self._is_skipping = not newline
        self.offset += len(line) + len(newline)
        return rest

    def is_read_out(self, frames: Frames, tick_s: float) -> bool:
        """Get True when, after the job's end, nothing more will come: the last read gave nothing, or always fails."""
        if self._fault:
            return tick_s - self._failing_since_s >= _RETRY_S
        return frames.cursor == frames.start

    def last_note(self, now_s: float) -> list[tuple[float, str, str, int]]:
        """Return what there is to say when the reading ends: why it could not go to the stream's end."""
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
