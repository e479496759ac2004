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
    kept = filled_columns(heads, rows)
    widths = [_width(column, heads, rows) for column in kept]
    to_right = [heads[column] in right for column in kept]
    lines: list[str] = []
    for row in (heads, *rows):
        cells = [row[column] for column in kept]
        lines.append(_line(cells, widths, to_right))
    return "\n".join(lines)


def filled_columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns that are not empty in every row, from 0."""
    return [column for column in range(len(heads)) if _is_filled(column, rows)]


def _is_filled(column: int, rows: Sequence[Sequence[str]]) -> bool:
    return any(row[column] for row in rows)


def _width(column: int, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    return max(len(row[column]) for row in (heads, *rows))


def _line(row: Sequence[str], widths: Sequence[int], to_right: Sequence[bool]) -> str:
    places = zip(row, widths, to_right, strict=True)
    return "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in places).rstrip()
