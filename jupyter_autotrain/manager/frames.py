"""From bytes of a trial's `metrics` stream to rows of the store.

Only whole lines are taken; a line that is still being written stays for the next read. So the cursor always stands at
the beginning of a line, and whoever reads on from it neither loses nor doubles a point.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.json import JsonValue

_LONGEST_LINE_BYTES = 1 << 20
_MOST_TIMES = (1 << 63) - 1


@dataclass(slots=True)
class Frames:
    """What a piece of the stream says; it begins at byte `start`, and `cursor` is the byte after the last whole line.

    `points` are (name, step, time_s, value), a value of None being NaN; `notes` are (time_s, level, text, count).
    `objective_seen` is true when the objective was reported at all.
    """

    start: int
    cursor: int
    points: list[tuple[str, int, float, float | None]] = field(default_factory=list)
    notes: list[tuple[float, str, str, int]] = field(default_factory=list)
    objective_seen: bool = False


def parse(data: bytes, offset: int, objective: str, now_s: float) -> Frames:
    """Read the whole lines of `data`, which begins at byte `offset` of the stream.

    Args:
        data: Bytes of the stream.
        offset: Where they begin; the beginning of a line.
        objective: Name of the objective metric, or "".
        now_s: The time to give to notes about unreadable lines.
    """
    whole, newline, rest = data.rpartition(b"\n")
    frames = Frames(offset, offset + len(whole) + len(newline))
    if len(rest) >= _LONGEST_LINE_BYTES:
        # Nothing this package writes is that long; waiting for its end could wait for ever.
        frames.cursor += len(rest)
        text = f"a metric line of more than {_LONGEST_LINE_BYTES} bytes was skipped"
        frames.notes.append((now_s, "warning", text, 1))
    for line in whole.splitlines():
        try:
            _take(frames, json.loads(line), objective)
        except (ValueError, TypeError, AttributeError, IndexError, KeyError, OverflowError):
            frames.notes.append((now_s, "warning", f"an unreadable metric line was skipped: {line[:80]!r}", 1))
    return frames


def _take(frames: Frames, frame: list[JsonValue], objective: str) -> None:
    match frame:
        case ["m", int(step), float(time_s) | int(time_s), dict(values)]:
            for name, value in values.items():
                frames.points.append((name, step, float(time_s), None if value is None else float(value)))
            if objective in values:
                frames.objective_seen = True
        case ["n", float(time_s) | int(time_s), str(level), str(text)]:
            frames.notes.append((float(time_s), level, text, 1))
        case ["n", float(time_s) | int(time_s), str(level), str(text), int(times)]:
            frames.notes.append((float(time_s), level, text, min(max(times, 1), _MOST_TIMES)))
        case ["v", int(version)] if version == wire.VERSION:
            pass
        case ["v", version]:
            text = f"the trial writes metrics of version {version}; this manager reads version {wire.VERSION}"
            frames.notes.append((0.0, "error", text, 1))
        case _:
            raise ValueError
