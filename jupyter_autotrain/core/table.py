"""Tables: aligned text of at most 80 columns for a shell, HTML for a notebook.

Values of a lower layer are shown by views that only the package's top module may name.
"""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from itertools import zip_longest
from typing import Final

from jupyter_autotrain.agent.terminal import printable

WIDTH: Final = 80
"""The most columns of a line of text."""

_GAP: Final = 2
_LEAST: Final = 12  # a column is not made narrower than this


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under their heads; a column that is empty in every row is left out.

    Attributes:
        heads: The names of the columns; without any name the heads are not shown.
        rows: The cells, as many per row as there are heads.
        right: The heads of the columns that are aligned to the right.
        more: A line below the rows, such as how many are left out; "" for none.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[str] = ()
    more: str = ""

    def text(self) -> str:
        """Return aligned lines of at most 80 columns: long cells go on below, more columns below the rows."""
        columns = self._filled_columns()
        lines: list[str] = []
        while columns:
            shown = self._fitting(columns)
            lines += self._lines(shown)
            columns = [columns[0], *columns[len(shown) :]] if len(shown) < len(columns) else []
        return printable("\n".join([*lines, *filter(None, [self.more])]))

    def html(self) -> str:
        """Return an HTML table; everything is escaped."""
        shown = self._filled_columns()
        names = "".join(f'<th scope="col">{_escaped(self.heads[column])}</th>' for column in shown)
        head = f"<thead><tr>{names}</tr></thead>" if any(self.heads) else ""
        body = "".join(self._html_row(row, shown) for row in self.rows)
        below = f"<p>{_escaped(self.more)}</p>" if self.more else ""
        return f"<table>{head}<tbody>{body}</tbody></table>{below}"

    def _filled_columns(self) -> list[int]:
        return [column for column, cells in enumerate(zip(*self.rows, strict=True)) if any(cells)]

    def _html_row(self, row: Sequence[str], shown: Sequence[int]) -> str:
        cells = "".join(f"<td>{_escaped(row[column])}</td>" for column in shown)
        return f"<tr>{cells}</tr>"

    def _fitting(self, columns: Sequence[int]) -> list[int]:
        """Return the first columns that a line has room for: two at least where there are two."""
        width = 0
        for place, column in enumerate(columns):
            width += min(self._width(column), _LEAST) + (_GAP if place else 0)
            if width > WIDTH and place > 1:
                return list(columns[:place])
        return list(columns)

    def _lines(self, columns: Sequence[int]) -> list[str]:
        widths = _shortened(list(map(self._width, columns)))
        to_right = [self.heads[column] in self.right for column in columns]
        heads = [self.heads] if any(self.heads) else []
        lines: list[str] = []
        for row in (*heads, *self.rows):
            cells = [_wrapped(row[column], width) for column, width in zip(columns, widths, strict=True)]
            lines += [_line(parts, widths, to_right) for parts in zip_longest(*cells, fillvalue="")]
        return lines

    def _width(self, column: int) -> int:
        return max(len(row[column]) for row in (self.heads, *self.rows))


def _shortened(widths: Sequence[int]) -> list[int]:
    """Return widths with which a line fits: the widest column gives way first."""
    shortened = list(widths)
    while sum(shortened) + _GAP * (len(shortened) - 1) > WIDTH and max(shortened) > _LEAST:
        shortened[shortened.index(max(shortened))] -= 1
    return shortened


def _wrapped(cell: str, width: int) -> list[str]:
    line = cell.replace("\n", " ")
    return textwrap.wrap(line, width) if len(line) > width else [line]


def _line(parts: Sequence[str], widths: Sequence[int], to_right: Sequence[bool]) -> str:
    places = zip(parts, widths, to_right, strict=True)
    gap = " " * _GAP
    return gap.join(part.rjust(width) if right else part.ljust(width) for part, width, right in places).rstrip()


def _escaped(text: str) -> str:
    return escape(printable(text))


_TOP = "jupyter_autotrain"


class Displayable:
    """A value that a notebook shows by its view where it is the value of a cell."""

    __slots__ = ()

    def _ipython_display_(self) -> None:
        show(self)

    def _display_(self) -> object:
        """Return what marimo draws of it."""
        return show(self)


def show(value: object) -> object:
    """Show a value where the user is; return the handle of the view, None where there is none."""
    return import_module(_TOP).show_value(value)


def plot(kind: str, *args: object, **options: object) -> object:
    """Return a plot of an experiment; `kind` is a module of `views` and its function, `plots:pareto`."""
    return import_module(_TOP).plot_of(kind, *args, **options)


def report(value: object, **options: object) -> str:
    """Return an experiment as one HTML document."""
    text: str = import_module(_TOP).report_of(value, **options)
    return text


def mime_bundle(value: object) -> Mapping[str, object]:
    """Return the static forms of a value, by MIME type."""
    bundle: Mapping[str, object] = import_module(_TOP).value_mime_bundle(value)
    return bundle


# An image knows nothing of the page around it: readable on white and on black, at 4:1 or better on both.
INK: Final = "#6e7781"


def svg_image(svg: str, label: str, width: float) -> str:
    """Return an SVG document as an image element that carries it.

    It serves HTML that untrusted notebooks show, too.

    Args:
        svg: The document, with its namespace, its own style and colours.
        label: The alternative text.
        width: Its width in pixels; it shrinks with the page.
    """
    data = base64.b64encode(svg.encode()).decode()
    source = f"data:image/svg+xml;base64,{data}"
    return f'<img alt="{escape(label, quote=True)}" width="{width:g}" style="max-width:100%" src="{source}"/>'
