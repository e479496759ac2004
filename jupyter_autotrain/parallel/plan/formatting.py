"""Times and tables as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

MOST_TELLING_GAP: Final = 0.5
MOST_NAMED: Final = 5


def ms(seconds: float) -> str:
    """Seconds as milliseconds in three digits, none below a tenth of a microsecond; from one second on as seconds."""
    if abs(seconds) < 1e-7:
        return "0 ms"
    if abs(seconds) < 1e-6:
        return f"{seconds * 1e3:.4f} ms"
    if abs(seconds) < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3f} s" if abs(seconds) < 10 else f"{seconds:.4g} s"


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their heads, two spaces apart."""
    cells = [tuple(heads), *(tuple(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def proof(gap: float, complete: bool, unsupported_work: Mapping[str, float]) -> str:
    """What a gap says about a plan, whether its search ran to the end, and which ops keep it from being proved."""
    early = "" if complete else " (search stopped early)"
    if gap <= 1e-9:
        return f"proved best{early}"
    if gap < MOST_TELLING_GAP:
        return f"at most {gap:.1%} from the best{early}"
    missing = "the search gives no near bound"
    if unsupported_work and gap == inf:
        missing = f"{shares(unsupported_work)} without a rule"
    return f"not proved ({missing}){early}"


def shares(unsupported_work: Mapping[str, float]) -> str:
    """Kinds of ops and what they hold of the work: `12 % of the work is in foo, bar`."""
    total = sum(unsupported_work.values())
    named = list(unsupported_work)[:MOST_NAMED]
    rest = len(unsupported_work) - len(named)
    return f"{total:.0%} of the work is in ops {', '.join(named)}{f' and {rest} more' if rest else ''}"
