"""Times, sizes and tables as text."""

from __future__ import annotations

from collections.abc import Sequence


def ms(seconds: float) -> str:
    """Seconds as milliseconds in three digits, none below a tenth of a microsecond; from one second on as seconds."""
    if abs(seconds) < 1e-7:
        return "0 ms"
    if abs(seconds) < 1e-6:
        return f"{seconds * 1e3:.4f} ms"
    if abs(seconds) < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3f} s" if abs(seconds) < 10 else f"{seconds:.4g} s"


def gigabytes(size: float) -> str:
    """Bytes in the largest unit that leaves a digit before the point."""
    value = float(size)
    for unit in ("B", "kB", "MB"):
        if abs(value) < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.1f} GB" if value < 1e4 else f"{value / 1000:.4g} TB"


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their heads, two spaces apart."""
    cells = [tuple(heads), *(tuple(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def proof(gap: float, complete: bool) -> str:
    """What a gap says about a plan, and whether its search ran to the end."""
    early = "" if complete else " (search stopped early)"
    if gap <= 1e-9:
        return f"proved best{early}"
    return (f"at most {gap:.1%} from the best" if gap < 0.5 else "not proved (the search gives no near bound)") + early
