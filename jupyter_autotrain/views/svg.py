"""Curves as one picture: no script, no style sheet, no address."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from jupyter_autotrain.core.table import INK, svg_image
from jupyter_autotrain.core.text_format import cut, number
from jupyter_autotrain.views.series import Floats

# Readable on white and on black, distinct for people with colour blindness; dashes distinguish them without colour.
PALETTE: Final = ("#3b7dd8", "#e08214", "#1b9e77", "#c24e9a", "#56b4e9", "#8a6200", "#8c6bb1", "#d1495b")
DASHES: Final = ("", "6 3", "2 2", "8 3 2 3")
_LARGEST = 4e307  # of an axis: its span and its steps stay numbers
_SMALLEST = 1e-290
_LEFT = 46.0
_RIGHT = 10.0
_TOP = 24.0
_BOTTOM = 20.0


@dataclass(frozen=True, slots=True)
class PlotCurve:
    """One line: its points, and how it is drawn; where a value is NaN, the line has a gap."""

    steps: Floats
    values: Floats
    color: str = INK
    width: float = 1.0
    opacity: float = 1.0
    dash: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class _PlotArea:
    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    ends: tuple[float, float]
    """The first and the last step that there is."""

    def lines(self, curve: PlotCurve) -> list[list[str]]:
        """Return the points of each line between two gaps."""
        import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

        across = self.left + (curve.steps - self.x[0]) / (self.x[1] - self.x[0]) * self.width
        values = np.clip(curve.values, *self.y)  # only values that no axis can span lie beyond the axis
        down = self.top + (self.y[1] - values) / (self.y[1] - self.y[0]) * self.height
        lines: list[list[str]] = [[]]
        for px, py in zip(across.tolist(), down.tolist(), strict=True):
            if math.isnan(py):
                lines.append([])
            else:
                lines[-1].append(f"{px:.4g},{py:.4g}")
        return list(filter(None, lines))


def color_of(trial: int) -> str:
    """Return the colour of a trial, by its number as in the live view.

    So it stays, whatever else is shown.
    """
    return PALETTE[(trial - 1) % len(PALETTE)]


def dash_of(trial: int) -> str:
    """Return the dashes of a trial, which tell those that share a colour apart."""
    return DASHES[(trial - 1) // len(PALETTE) % len(DASHES)]


def chart(
    title: str, curves: Sequence[PlotCurve], x: float, width: float, height: float, label: str = "step {}"
) -> str:
    """Return one panel of an SVG as a group moved to `x`; curves later in the list lie on top.

    `label` is the text at the first place of the x axis.
    """
    shown = [curve for curve in curves if any(map(math.isfinite, curve.values.tolist()))]
    head = f'<g transform="translate({x:g} 0)"><text x="{_LEFT:g}" y="14" font-weight="600">{escape(cut(title, 40))}'
    if not shown:
        empty = f'<text x="{_LEFT:g}" y="{height / 2:g}" opacity=".6">no value yet</text>'
        return f"{head}</text>{empty}</g>"
    area = _plot_area(shown, width, height)
    return f"{head}</text>{_axes(area, label)}{''.join(_lines(area, curve) for curve in shown)}</g>"


def document(panels: Sequence[str], width: float, height: float, label: str) -> str:
    """Return the panels side by side, as one image element with an alternative text."""
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="{INK}">{"".join(panels)}</svg>'
    )
    return svg_image(picture, label, width)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most `most` + 1 round numbers from low to high."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [(first + i) * step for i in range(int((high - first * step) / step + 1e-9) + 1)]


def _plot_area(curves: Sequence[PlotCurve], width: float, height: float) -> _PlotArea:
    ends = _ends([curve.steps for curve in curves])
    y = _range(*_ends([curve.values for curve in curves]), 0.06)
    size = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM
    return _PlotArea(_LEFT, _TOP, *size, _range(*ends, 0.0), y, ends)


def _ends(columns: Sequence[Floats]) -> tuple[float, float]:
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    joined = np.concatenate(columns)
    return _bounded(float(np.nanmin(joined))), _bounded(float(np.nanmax(joined)))


def _range(low: float, high: float, margin: float) -> tuple[float, float]:
    if high - low <= max(abs(high) * 1e-9, _SMALLEST):
        pad = abs(high) * 0.1 if abs(high) > 10 * _SMALLEST else 1.0
        return low - pad, high + pad
    return low - margin * (high - low), high + margin * (high - low)


def _bounded(value: float) -> float:
    return min(max(value, -_LARGEST), _LARGEST)


def _axes(area: _PlotArea, label: str) -> str:
    right = area.left + area.width
    bottom = area.top + area.height
    parts = []
    for value in ticks(*area.y):
        y = area.top + (area.y[1] - value) / (area.y[1] - area.y[0]) * area.height
        parts.append(
            f'<path d="M{area.left:g} {y:.1f}H{right:g}" stroke="{INK}" opacity=".25"/>'
            f'<text x="{area.left - 6:g}" y="{y + 3.5:.1f}" text-anchor="end">{number(value)}</text>'
        )
    first, last = area.ends
    middle = area.left + area.width / 2
    marks = [(first, "start", area.left, label), (last, "end", right, "{}")]
    for value, anchor, x, text in marks if first < last else [(first, "middle", middle, label)]:
        place = f"{value:.0f}" if abs(value) < 1e6 else number(value)
        parts.append(f'<text x="{x:g}" y="{bottom + 15:g}" text-anchor="{anchor}">{text.format(place)}</text>')
    return "".join(parts)


def _lines(area: _PlotArea, curve: PlotCurve) -> str:
    return "".join(_line(points, curve) for points in area.lines(curve))


def _line(points: Sequence[str], curve: PlotCurve) -> str:
    if len(points) == 1:
        px, py = points[0].split(",")
        return f'<circle cx="{px}" cy="{py}" r="{1.5 + curve.width / 2:g}" fill="{curve.color}"/>'
    extra = f' opacity="{curve.opacity:g}"' if curve.opacity < 1 else ""
    if curve.dash:
        extra += f' stroke-dasharray="{curve.dash}"'
    return (
        f'<polyline fill="none" stroke="{curve.color}" stroke-width="{curve.width:g}" stroke-linejoin="round"{extra} '
        f'points="{" ".join(points)}"/>'
    )
