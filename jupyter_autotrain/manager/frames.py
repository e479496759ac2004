"""From bytes of a trial's `metrics` stream to rows of the store.

Only whole lines are taken; a line that is still being written stays for the next read. So the cursor always stands at
the beginning of a line, and whoever reads on from it neither loses nor doubles a point. A trial's code can write
anything there: what is no frame costs its own line, and a note.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from jupyter_autotrain.core import files, wire

_MOST_STEP = 1 << 63  # what the store can hold
_MOST_TIMES = _MOST_STEP - 1


@dataclass(slots=True)
class Frames:
    """A part of the stream; it begins at byte `start`, and `cursor` is the byte after the last whole line.

    `points` are (name, step, time_s, value), a value of None being NaN; `notes` are (time_s, level, text, count).
    `objective_seen` is true when the objective was reported at all.
    """

    start: int
    cursor: int
    points: list[tuple[str, int, float, float | None]] = field(default_factory=list)
    notes: list[tuple[float, str, str, int]] = field(default_factory=list)
    objective_seen: bool = False

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
            points = [
                (_name(name), step, when, None if value is None else _finite(value)) for name, value in values.items()
            ]
            frames.points += points
            if objective in values:
                frames.objective_seen = True
        case ["n", float(time_s) | int(time_s), str(level), str(text)]:
            frames.notes.append((_finite(time_s), level[: wire.LONGEST_NAME], _storable(text), 1))
        case ["n", float(time_s) | int(time_s), str(level), str(text), int(times)]:
            shown = _storable(text)
            frames.notes.append((_finite(time_s), level[: wire.LONGEST_NAME], shown, min(max(times, 1), _MOST_TIMES)))
        case ["v", int(version)] if version == wire.VERSION:
            pass
        case ["r", int(), float() | int(), dict(values), str()]:  # its supervisor adds the reduced value
            frames.objective_seen = frames.objective_seen or objective in values
        case ["v", int(version)]:
            text = f"the trial writes metrics of version {version}; this manager reads version {wire.VERSION}"
            frames.notes.append((0.0, "error", text, 1))
        case _:
            raise ValueError


def _finite(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _storable(text: str) -> str:
    """The text without half pairs of UTF-16."""
    return text.encode(errors="replace").decode()


def _name(name: str) -> str:
    name.encode()  # half a pair of UTF-16 cannot be stored
    if len(name) > wire.LONGEST_NAME:
        raise ValueError
    return name
