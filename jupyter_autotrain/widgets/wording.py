"""How numbers, durations, parameters and states read in the views."""

from __future__ import annotations

import math
from collections.abc import Mapping

from jupyter_autotrain.core.json import JsonValue


def number(value: float | None) -> str:
    """Four significant digits; a dash where there is no value."""
    if value is None:
        return "-"
    return "NaN" if math.isnan(value) else f"{value:.4g}"


def duration(seconds: float) -> str:
    """A duration to read at a glance: `0.4 s`, `12 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def parameters(params: Mapping[str, JsonValue], most: int = 80) -> str:
    """Parameters on one line, cut at `most` characters: `lr=0.01 width=64`."""
    text = " ".join(f"{key}={number(item) if isinstance(item, float) else item}" for key, item in params.items())
    return cut(text, most)


def cut(text: str, most: int) -> str:
    """The text on one line, with an ellipsis where it was too long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
