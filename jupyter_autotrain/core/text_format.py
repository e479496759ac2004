"""The text of numbers, durations, counts and parameters, and the nearest known names, wherever a person reads them."""

from __future__ import annotations

import difflib
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from jupyter_autotrain.agent.json import JsonValue


def number(value: float | None) -> str:
    """Return a number in four significant digits; a dash where there is no value."""
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
    """Return a time of the day here: `14:05`."""
    return time.strftime("%H:%M", time.localtime(epoch_s))


def count(many: int, what: str, plural: str = "") -> str:
    """Return a count with its noun: `1 trial`, `3 trials`.

    The plural is given where an s does not make it.
    """
    return f"{many} {what}" if many == 1 else f"{many} {plural or f'{what}s'}"


def trial_numbers(numbers: Collection[int], most: int = 5) -> str:
    """Return trial numbers in words: `trial 3`, `trials 1, 2, 3`, `trials 1, 2, 3, 4, 5 and 7 more`."""
    named = ", ".join(map(str, list(numbers)[:most]))
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return f"trial{'' if len(numbers) == 1 else 's'} {named}{more}"


def first_of(texts: Sequence[str], most: int) -> str:
    """Return the first of many texts with commas between them, and an ellipsis where there are more."""
    return ", ".join(texts[:most]) + (" ..." if len(texts) > most else "")


def parameter(value: JsonValue) -> str:
    """Return one parameter as text; an option of a nested choice as `big(width=15 depth=1.796)`."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        rest = {key: item for key, item in value.items() if key != "_name"}
        return f"{value.get('_name', '')}({parameters(rest)})" if rest else str(value.get("_name", "{}"))
    return str(value)


def parameters(params: Mapping[str, JsonValue]) -> str:
    """Return parameters on one line: `lr=0.01 width=64`."""
    return " ".join(f"{key}={parameter(item)}" for key, item in params.items())


def cut(text: str, most: int) -> str:
    """Return the text on one line, with an ellipsis where it was too long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


_LONGEST = 64  # characters that are compared; difflib is quadratic in them


def closest_matches(name: str, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> list[str]:
    """Return the known names most like `name`, best first, in any letter case.

    Args:
        name: The unknown name.
        known: The names that there are.
        most: How many to give at most.
        cutoff: The least similarity, from 0 (any) to 1 (equal).
    """
    by_fold = {one.casefold(): one for one in known}
    found = difflib.get_close_matches(name[:_LONGEST].casefold(), by_fold, n=most, cutoff=cutoff)
    return [by_fold[one] for one in found]


def closest_match(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name most like `name`, or "" where none is similar enough."""
    return next(iter(closest_matches(name, known, 1, cutoff)), "")
