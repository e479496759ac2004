"""How numbers, durations, sizes, counts and parameters read, wherever a person reads them."""

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
    if not math.isfinite(seconds):
        return "-"
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def count(many: int, what: str, plural: str = "") -> str:
    """`1 trial`, `3 trials`; the plural is given where an s does not make it."""
    return f"{many} {what}" if many == 1 else f"{many} {plural or f'{what}s'}"


def size(size_bytes: float, *, up: bool = False) -> str:
    """Bytes as `12 B`, `3.4 kB`, `56 MB`; rounded up where whoever reads it is to give so much."""
    value, unit, *larger = float(size_bytes), "B", "kB", "MB", "GB", "TB"
    while value >= 1000 and larger:
        value, unit, *larger = value / 1000, *larger
    digits = 0 if unit == "B" or (value >= 100 and larger) else 1
    return f"{math.ceil(value * 10**digits) / 10**digits if up else value:.{digits}f} {unit}"


def memory_text(held_bytes: float, *, up: bool = False) -> str:
    """Bytes of a device's memory in binary units, as devices are sold: `80 GiB`, `23.4 MiB`."""
    value, unit, *larger = float(held_bytes), "B", "KiB", "MiB", "GiB", "TiB"
    while abs(value) >= 1024 and larger:
        value, unit, *larger = value / 1024, *larger
    rounded = math.ceil(value * 10) / 10 if up else round(value, 1)
    return f"{rounded:g} {unit}" if abs(rounded) < 1e5 else f"{rounded:.0f} {unit}"


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
