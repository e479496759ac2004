"""Small pieces of text: tables, durations, sizes."""

from __future__ import annotations

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align rows under their heads, two spaces apart."""
    cells = [tuple(heads), *(tuple(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """A duration a person reads at a glance: `0.4 s`, `12 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def count(many: int, what: str) -> str:
    """`1 trial`, `3 trials`."""
    return f"{many} {what}" if many == 1 else f"{many} {what}s"


def size(size_bytes: float) -> str:
    """Bytes as `12 B`, `3.4 kB`, `56 MB`."""
    value = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def number(value: float | None) -> str:
    """A metric value in four significant digits, `-` when there is none."""
    return "-" if value is None else f"{value:.4g}"


def params(values: object) -> str:
    """Parameters on one line: `lr=0.01 width=64`."""
    if not isinstance(values, dict):
        return str(values)
    return " ".join(f"{key}={item:.4g}" if isinstance(item, float) else f"{key}={item}" for key, item in values.items())


def shorten(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
