"""The colours of curves: the same in cards, charts and lists, and none like another, also for colour-blind eyes."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest

from jupyter_autotrain.views.svg import PALETTE

THEME = Path(__file__).parents[3] / "labextension" / "widgets" / "lib" / "theme.ts"
# Machado, Oliveira and Fernandes, 2009: what eyes without one kind of cones see of linear RGB.
EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.1523, 1.0526, -0.2049), (0.1145, 0.7863, 0.0992), (-0.0039, -0.0481, 1.052)),
    "deuteranopia": ((0.3673, 0.8606, -0.228), (0.2801, 0.6725, 0.0474), (-0.0118, 0.0429, 0.9689)),
    "tritanopia": ((1.2555, -0.0767, -0.1788), (-0.0784, 0.9308, 0.1476), (0.0047, 0.6914, 0.3039)),
}
# Ottosson, 2020: to cones, and from their cube roots to OKLab.
CONES = ((0.4122, 0.5363, 0.0514), (0.2119, 0.6807, 0.1074), (0.0883, 0.2817, 0.63))
OKLAB = ((0.2105, 0.7936, -0.0041), (1.978, -2.4286, 0.4506), (0.0259, 0.7828, -0.8087))


def dot(row, vector):
    return sum(factor * value for factor, value in zip(row, vector, strict=True))


def product(matrix, vector):
    return [dot(row, vector) for row in matrix]


def linear(color):
    shares = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]


def seen(color, eyes):
    """Return the colour in OKLab, in which 2 is a difference that is just seen."""
    light = [min(max(value, 0), 1) for value in product(EYES[eyes], linear(color))]
    return product(OKLAB, [100 * math.cbrt(cone) for cone in product(CONES, light)])


def luminance(color):
    return dot((0.2126, 0.7152, 0.0722), linear(color))


def contrast(color, other):
    dark, light = sorted((luminance(color), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_cards_and_charts_have_the_same_colours_in_the_same_order():
    (palette,) = re.findall(r"const PALETTE = \[(.*?)\]", THEME.read_text())
    assert tuple(re.findall(r"#\w+", palette)) == PALETTE


@pytest.mark.parametrize(
    ("eyes", "least"), [("all cones", 9), ("protanopia", 4), ("deuteranopia", 4), ("tritanopia", 4)]
)
def test_no_two_colours_are_alike(eyes, least):
    alike = []
    for pair in itertools.combinations(PALETTE, 2):
        one, other = (seen(color, eyes) for color in pair)
        if math.dist(one, other) < least:
            alike.append(pair)
    assert alike == []


def test_every_colour_is_seen_on_white_and_on_black():
    assert all(contrast(color, ground) > 2.2 for color in PALETTE for ground in ("#ffffff", "#111111"))
