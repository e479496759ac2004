"""How numbers, durations, counts and parameters read, wherever a person reads them."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping

from jupyter_autotrain.core.json import JsonValue


def number(value: float | None) -> str:
    """Four significant digits; a dash where there is no value."""
    if value is None:
        return "-"
    return "NaN" if math.isnan(value) else f"{value:.4g}"


def duration(seconds: float) -> str:
    """Return a duration to read at a glance: `0.4 s`, `12 s`, `1 min`, `3 min 05 s`, `2 h 10 min`."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"


def clock_time(epoch_s: float) -> str:
    """A time of the day here: `14:05`."""
    return time.strftime("%H:%M", time.localtime(epoch_s))


def count(many: int, what: str, plural: str = "") -> str:
    """`1 trial`, `3 trials`; the plural is given where an s does not make it."""
    return f"{many} {what}" if many == 1 else f"{many} {plural or f'{what}s'}"


def trial_numbers(numbers: Collection[int], most: int = 5) -> str:
    """`trial 3`, `trials 1, 2, 3`, `trials 1, 2, 3, 4, 5 and 7 more`."""
    named = ", ".join(str(one) for one in list(numbers)[:most])
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return f"trial{'' if len(numbers) == 1 else 's'} {named}{more}"


def parameter(value: JsonValue) -> str:
    """One parameter; an option of a nested choice as `big(width=15 depth=1.796)`."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        rest = {key: item for key, item in value.items() if key != "_name"}
        return f"{value.get('_name', '')}({parameters(rest)})" if rest else str(value.get("_name", "{}"))
    return str(value)


def parameters(params: Mapping[str, JsonValue]) -> str:
    """Parameters on one line: `lr=0.01 width=64`."""
    return " ".join(f"{key}={parameter(item)}" for key, item in params.items())


def cut(text: str, most: int) -> str:
    """The text on one line, with an ellipsis where it was too long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
