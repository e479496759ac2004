"""Names, colours, times and tables as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from math import inf
from textwrap import fill, wrap
from typing import Final

from jupyter_autotrain.parallel.graph.graph import LoopRole, Op

COLOURS: Final[Mapping[LoopRole, str]] = {
    LoopRole.BATCH: "data",
    LoopRole.SEQUENCE: "sequence",
    LoopRole.FEATURE: "tensor",
    LoopRole.HEAD: "tensor",
    LoopRole.OTHER: "tensor",
    LoopRole.EXPERT: "expert",
    LoopRole.SPATIAL: "spatial",
}


def label(op: Op) -> str:
    """Return the last two parts of an op's path: `q_proj.linear`, without numbers of layers."""
    parts = [part for part in op.name.split(".") if not part.isdigit()]
    return ".".join(parts[-2:])


def colour(split: Sequence[LoopRole | None]) -> str:
    """One word for what a node is split along."""
    kinds = {COLOURS[role] for role in split if role}
    if not kinds:
        return "replica"
    return kinds.pop() if len(kinds) == 1 else "mixed"


MOST_TELLING_GAP: Final = 0.5
MOST_NAMED: Final = 5
WIDTH: Final = 88  # columns of a text, as wide as a notebook shows without a fold
LEAST_WIDTH: Final = 12  # columns of the widest cell


def ms(seconds: float) -> str:
    """Seconds as milliseconds in three digits, none below a tenth of a microsecond; from one second on as seconds."""
    if abs(seconds) < 1e-7:
        return "0 ms"
    if abs(seconds) < 1e-6:
        return f"{seconds * 1e3:.4f} ms"
    if abs(seconds) < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3f} s" if abs(seconds) < 10 else f"{seconds:.4g} s"


@dataclass(frozen=True, slots=True, repr=False)
class PrintedTable:
    """Rows under their heads: text of at most `WIDTH` columns, and HTML in a notebook."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __str__(self) -> str:
        return aligned(self.heads, self.rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.heads, self.rows)


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their heads, two spaces apart, in at most `WIDTH` columns: the longest cells take further lines.

    Words stay whole as long as there is a way to do so.
    """
    cells = [tuple(heads), *map(tuple, rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    longest = [max(map(_longest_piece, column)) for column in columns]
    _narrow(widths, longest)
    _narrow(widths, [LEAST_WIDTH] * len(widths))
    lines = []
    for row in cells:
        parts = [_cut(cell, width) for cell, width in zip(row, widths, strict=True)]
        lines += ["  ".join(map(str.ljust, line, widths)).rstrip() for line in zip_longest(*parts, fillvalue="")]
    return "\n".join(lines)


def _narrow(widths: list[int], least: Sequence[int]) -> None:
    """Take columns from the widest cells until a line fits, or each is as narrow as it may be."""
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        wide = [place for place, width in enumerate(widths) if width > least[place]]
        if not wide:
            return
        widths[max(wide, key=widths.__getitem__)] -= 1


def _longest_piece(cell: str) -> int:
    return max(len(piece.rstrip()) for piece in _pieces(cell))


def _pieces(cell: str) -> list[str]:
    """Return the parts of a cell between which a line may end: behind spaces but before units, and behind dots."""
    return re.split(r"(?<=[ .])(?<!\d\.)(?=\S)(?!(?:[KMGT]i)?B\b|[mµ]?s\b)", cell)


def _cut(cell: str, width: int) -> list[str]:
    """Return a cell in lines."""
    lines = [""]
    for piece in _pieces(cell):
        if lines[-1] and len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [part.rstrip() for line in lines for part in wrap(line, width) or [""]]


def wrapped(lines: Sequence[str], indent: int) -> str:
    """Lines of at most `WIDTH` columns; what does not fit goes on indented."""
    return "\n".join(fill(line, WIDTH, subsequent_indent=" " * indent) for line in lines)


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]], found: int | None = None) -> str:
    """Return rows under their heads as HTML, numbers to the right; the row `found` is marked.

    A table wider than its page scrolls by itself.
    """
    columns = zip(*rows, strict=True) if rows else [()] * len(heads)
    sides = [f' style="{_RIGHT if all(map(_is_number, column)) else _LEFT}"' for column in columns]
    head = "".join(f"<th{side}>{escape(text)}</th>" for side, text in zip(sides, heads, strict=True))
    body = []
    for place, cells in enumerate(rows):
        texts = "".join(f"<td{side}>{escape(cell)}</td>" for side, cell in zip(sides, cells, strict=True))
        body.append(f"<tr{' class=found' if place == found else ''}>{texts}</tr>")
    return f'<div style="overflow-x:auto"><table><tr>{head}</tr>{"".join(body)}</table></div>'


_LEFT: Final = "text-align:left"
_RIGHT: Final = "text-align:right;white-space:nowrap"


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() or cell in {"", "-"}


def proof(gap: float, complete: bool, unsupported_work: Mapping[str, float], among: str = "") -> str:
    """Return what a gap says about a plan.

    Args:
        gap: To a proved lower bound, relative.
        complete: Whether the search ran to its end.
        unsupported_work: The ops that keep a plan from being proved.
        among: The plans searched, as in " of those that run"; "" for all.
    """
    early = "" if complete else " (search stopped early)"
    if gap <= 1e-9:
        return f"proved best{among}{early}"
    if gap < MOST_TELLING_GAP:
        return f"at most {gap:.1%} from the best{among}{early}"
    missing = "the search found no close bound"
    if unsupported_work and gap == inf:
        missing = f"{shares(unsupported_work)} without a rule"
    return f"not proved ({missing}){early}"


def shares(unsupported_work: Mapping[str, float]) -> str:
    """Kinds of ops and what they hold of the work: `12 % of the work is in foo, bar`."""
    total = sum(unsupported_work.values())
    named = list(unsupported_work)[:MOST_NAMED]
    rest = len(unsupported_work) - len(named)
    return f"{total:.0%} of the work is in ops {', '.join(named)}{f' and {rest} more' if rest else ''}"
