"""Curves as one picture: no script, no style sheet, no address."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jupyter_autotrain.core.picture import INK, image
from jupyter_autotrain.core.wording import cut, number

# Readable on white and on black, told apart by people with colour blindness; dashes tell them apart without colour.
PALETTE: Final = ("#3b7dd8", "#e08214", "#1b9e77", "#c24e9a", "#56b4e9", "#b8860b", "#8c6bb1", "#d1495b")
DASHES: Final = ("", "6 3", "2 2", "8 3 2 3")
_LARGEST = 4e307  # of an axis: its span and its steps stay numbers
_SMALLEST = 1e-290
_LEFT = 46.0
_RIGHT = 10.0
_TOP = 24.0
_BOTTOM = 20.0

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """One line: its points, and how it is drawn."""

    steps: Floats
    values: Floats
    color: str = INK
    width: float = 1.0
    opacity: float = 1.0
    dash: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class _Frame:
    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def points(self, curve: Curve) -> str:
        across = self.left + (curve.steps - self.x[0]) / (self.x[1] - self.x[0]) * self.width
        values = np.clip(curve.values, *self.y)  # beyond the axis are only values that no axis can span
        down = self.top + (self.y[1] - values) / (self.y[1] - self.y[0]) * self.height
        return " ".join(f"{px:.4g},{py:.4g}" for px, py in zip(across, down, strict=True))


def color_of(trial: int) -> str:
    """The colour of a trial: by its number, as in the live view, so it stays whatever else is shown."""
    return PALETTE[(trial - 1) % len(PALETTE)]


def dash_of(trial: int) -> str:
    """The dashes of a trial: they tell apart those that share a colour."""
    return DASHES[(trial - 1) // len(PALETTE) % len(DASHES)]


def decimate(steps: Floats, values: Floats, buckets: int) -> tuple[Floats, Floats]:
    """Keep the least and the greatest value of each of `buckets` equal stretches; both ends stay too.

    Not-finite values are left out. Nothing is lost that could be seen at that width.
    """
    kept = np.isfinite(values)
    steps, values = steps[kept], values[kept]
    if len(steps) <= 2 * buckets:
        return steps, values
    edges = np.linspace(0, len(values), buckets + 1).astype(int)
    picks = {0, len(values) - 1}
    for first, last in pairwise(edges):
        picks.update((first + int(values[first:last].argmin()), first + int(values[first:last].argmax())))
    chosen = np.fromiter(sorted(picks), dtype=np.intp)
    return steps[chosen], values[chosen]


def chart(title: str, curves: Sequence[Curve], x: float, width: float, height: float) -> str:
    """One panel of an SVG, as a group moved to `x`; curves later in the list lie on top."""
    shown = [curve for curve in curves if len(curve.values)]
    head = f'<g transform="translate({x:g} 0)"><text x="{_LEFT:g}" y="14" font-weight="600">{escape(cut(title, 40))}'
    if not shown:
        empty = f'<text x="{_LEFT:g}" y="{height / 2:g}" opacity=".6">no value yet</text>'
        return f"{head}</text>{empty}</g>"
    frame = _frame(shown, width, height)
    return f"{head}</text>{_axes(frame)}{''.join(_line(frame, curve) for curve in shown)}</g>"


def document(panels: Sequence[str], width: float, height: float, label: str) -> str:
    """The panels side by side, as one image element with a spoken label."""
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="{INK}">{"".join(panels)}</svg>'
    )
    return image(picture, label, width)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """At most `most` + 1 round numbers from low to high."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [(first + i) * step for i in range(int((high - first * step) / step + 1e-9) + 1)]


def _frame(curves: Sequence[Curve], width: float, height: float) -> _Frame:
    x = _range([curve.steps for curve in curves], 0.0)
    y = _range([curve.values for curve in curves], 0.06)
    return _Frame(_LEFT, _TOP, width - _LEFT - _RIGHT, height - _TOP - _BOTTOM, x, y)


def _range(columns: Sequence[Floats], margin: float) -> tuple[float, float]:
    ends = min(float(column.min()) for column in columns), max(float(column.max()) for column in columns)
    low, high = (min(max(end, -_LARGEST), _LARGEST) for end in ends)
    if high - low <= max(abs(high) * 1e-9, _SMALLEST):
        pad = abs(high) * 0.1 if abs(high) > 10 * _SMALLEST else 1.0
        return low - pad, high + pad
    return low - margin * (high - low), high + margin * (high - low)


def _axes(frame: _Frame) -> str:
    right = frame.left + frame.width
    bottom = frame.top + frame.height
    parts = []
    for value in ticks(*frame.y):
        y = frame.top + (frame.y[1] - value) / (frame.y[1] - frame.y[0]) * frame.height
        parts.append(
            f'<path d="M{frame.left:g} {y:.1f}H{right:g}" stroke="{INK}" opacity=".25"/>'
            f'<text x="{frame.left - 6:g}" y="{y + 3.5:.1f}" text-anchor="end">{number(value)}</text>'
        )
    for value, anchor, x, unit in ((frame.x[0], "start", frame.left, "step "), (frame.x[1], "end", right, "")):
        label = unit + (f"{value:.0f}" if abs(value) < 1e6 else number(value))
        parts.append(f'<text x="{x:g}" y="{bottom + 15:g}" text-anchor="{anchor}">{label}</text>')
    return "".join(parts)


def _line(frame: _Frame, curve: Curve) -> str:
    if len(curve.values) == 1:
        px, py = frame.points(curve).split(",")
        return f'<circle cx="{px}" cy="{py}" r="{1.5 + curve.width / 2:g}" fill="{curve.color}"/>'
    extra = (f' opacity="{curve.opacity:g}"' if curve.opacity < 1 else "") + (
        f' stroke-dasharray="{curve.dash}"' if curve.dash else ""
    )
    return (
        f'<polyline fill="none" stroke="{curve.color}" stroke-width="{curve.width:g}" stroke-linejoin="round"{extra} '
        f'points="{frame.points(curve)}"/>'
    )
