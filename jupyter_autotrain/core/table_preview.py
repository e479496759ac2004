"""The first rows of a table, as text and as HTML: what a notebook shows of a list that is a cell's value."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from jupyter_autotrain.core.table import filled_columns, table
from jupyter_autotrain.terminal import printable

ROWS: Final = 20


def text(heads: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> str:
    """The rows, and how many of `total` they leave out."""
    return printable(table(heads, rows)) + (f"\n{_more(rows, total)}" if total > len(rows) else "")


def html(heads: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> str:
    """The same as an HTML table; everything is escaped."""
    shown = filled_columns(heads, rows)
    head = "".join(f'<th scope="col">{escape(heads[column])}</th>' for column in shown)
    body = "".join(_html_row(row, shown) for row in rows)
    more = f"<p>{_more(rows, total)}</p>" if total > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _html_row(row: Sequence[str], shown: Sequence[int]) -> str:
    cells = "".join(f"<td>{escape(row[column])}</td>" for column in shown)
    return f"<tr>{cells}</tr>"


def _more(rows: Sequence[Sequence[str]], total: int) -> str:
    return f"and {total - len(rows)} more"
