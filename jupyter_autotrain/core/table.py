"""Tables as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()) -> str:
    """Align rows under their heads, two spaces apart; a column that is empty in every row is left out.

    Args:
        heads: The names of the columns.
        rows: The cells, as many per row as there are heads.
        right: The heads of the columns that are aligned to the right.
    """
    kept = [column for column in range(len(heads)) if any(row[column] for row in rows)]
    cells = [[row[column] for column in kept] for row in (heads, *rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(kept))]
    to_right = [heads[column] in right for column in kept]
    return "\n".join(_line(row, widths, to_right) for row in cells)


def _line(row: Sequence[str], widths: Sequence[int], to_right: Sequence[bool]) -> str:
    places = zip(row, widths, to_right, strict=True)
    return "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in places).rstrip()
