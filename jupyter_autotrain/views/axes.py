"""Axes of a plot whose points are trials: linear, logarithmic, or one place for each option of a choice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.core.space import Choice, Distribution, NestedSpace
from jupyter_autotrain.core.table import INK
from jupyter_autotrain.core.text_format import cut, number, parameter
from jupyter_autotrain.views.svg import ticks

_LEFT: Final = 56.0
_RIGHT: Final = 14.0
_TOP: Final = 24.0
_BOTTOM: Final = 34.0
_MARGIN: Final = 0.05
_MOST_OPTIONS: Final = 8
_OPTION_CHARACTERS: Final = 12


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis.

    Attributes:
        label: The name of what lies on it.
        low: Its first value, or its logarithm.
        high: Its last one; more than `low`.
        is_log: Whether places follow the logarithm of values.
        options: The options of a choice; the value of each is its place in this list.
    """

    label: str
    low: float
    high: float
    is_log: bool = False
    options: tuple[str, ...] = ()

    def share(self, value: float) -> float:
        """Return the place of a value: 0 at the axis' begin, 1 at its end."""
        place = math.log10(value) if self.is_log else value
        return (place - self.low) / (self.high - self.low)

    def marks(self) -> list[tuple[float, str]]:
        """Return the places that are named on it."""
        if self.options:
            step = math.ceil(len(self.options) / _MOST_OPTIONS)
            shown = list(enumerate(self.options))[::step]
            return [(self.share(place), cut(option, _OPTION_CHARACTERS)) for place, option in shown]
        values = self._powers() if self.is_log else ticks(self.low, self.high, 4)
        return [(self.share(value), number(value)) for value in values]

    def _powers(self) -> Sequence[float]:
        """Return the powers of ten on a logarithmic axis that are named; its ends where there are too few."""
        first = math.ceil(self.low)
        last = math.floor(self.high)
        powers = range(first, last + 1, max(math.ceil((last - first) / 3), 1))
        return [10**self.low, 10**self.high] if len(powers) < 2 else [10.0**power for power in powers]


def axis(label: str, values: Sequence[float], distribution: Distribution | None = None) -> Axis:
    """Return an axis on which all values lie, each of them finite; at least one."""
    if isinstance(distribution, Choice):
        options = tuple(map(_option_text, distribution.options))
        return Axis(label, -0.5, len(options) - 0.5, options=options)
    is_log = bool(getattr(distribution, "log", False)) and min(values) > 0
    places = list(map(math.log10, values)) if is_log else list(values)
    low = min(places)
    high = max(places)
    pad = (high - low) * _MARGIN or abs(high) * 0.1 or 1.0
    return Axis(label, low - pad, high + pad, is_log)


def value_on(distribution: Distribution, value: JsonValue) -> float | None:
    """Return where a parameter lies on its axis; None where it is no number and no option."""
    if isinstance(distribution, Choice):
        texts = list(map(_option_text, distribution.options))
        text = _option_text(value)
        return texts.index(text) if text in texts else None
    return float(value) if isinstance(value, int | float) else None


def _option_text(option: NestedSpace | JsonValue) -> str:
    if isinstance(option, NestedSpace):
        return option.name
    return str(option["_name"]) if isinstance(option, dict) and "_name" in option else parameter(option)


@dataclass(frozen=True, slots=True)
class Panel:
    """A plot area with its two axes, as a part of a picture.

    Attributes:
        x, y: Its axes.
        left, top: Its place in the picture, in pixels.
        width, height: Its size in pixels, with the texts around it.
    """

    x: Axis
    y: Axis
    left: float
    top: float
    width: float
    height: float

    def place(self, x_share: float, y_share: float) -> tuple[float, float]:
        """Return the pixels of a point that is given by its shares of both axes."""
        across = self.left + _LEFT + x_share * (self.width - _LEFT - _RIGHT)
        return across, self.top + self.height - _BOTTOM - y_share * (self.height - _TOP - _BOTTOM)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixels of a pair of values."""
        return self.place(self.x.share(x), self.y.share(y))

    def dot(self, x: float, y: float, color: str, size: float = 3.0, opacity: float = 0.6) -> str:
        """Return a dot at a pair of values."""
        px, py = self.point(x, y)
        return f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{size:g}" fill="{color}" fill-opacity="{opacity:g}"/>'

    def frame(self) -> str:
        """Return the lines and texts of both axes."""
        left, bottom = self.place(0, 0)
        right, top = self.place(1, 1)
        parts = [
            f'<text x="{left:g}" y="{top - 8:g}" font-weight="600">{escape(cut(self.y.label, 40))}</text>',
            f'<text x="{(left + right) / 2:g}" y="{bottom + 29:g}" text-anchor="middle" font-weight="600">'
            f"{escape(cut(self.x.label, 40))}</text>",
        ]
        for share, text in self.y.marks():
            _, py = self.place(0, share)
            parts.append(f'<path d="M{left:g} {py:.1f}H{right:g}" stroke="{INK}" opacity=".25"/>')
            parts.append(f'<text x="{left - 6:g}" y="{py + 3.5:.1f}" text-anchor="end">{escape(text)}</text>')
        for share, text in self.x.marks():
            px, _ = self.place(share, 0)
            parts.append(f'<text x="{px:.1f}" y="{bottom + 14:g}" text-anchor="middle">{escape(text)}</text>')
        return "".join(parts)
