"""Tests of what a chart draws, point by point."""

import math

import pytest

pytestmark = pytest.mark.browser

BLUE = (59, 125, 216)  # the colour of trial 1


@pytest.fixture
def place(make_place):
    return make_place(trials=1)


def points(values):
    return [("val_acc", step, value) for step, value in enumerate(values)]


def test_points_that_stand_between_values_that_are_no_numbers_are_drawn(alone, place):
    place.begin(1)
    place.report(1, points([0.2, None, 0.9, None, None, 0.4, None, 0.6]))
    page = alone().show(place)
    dots = 4 * math.pi * 2.5**2
    page.until(lambda: page.ink(BLUE) > dots * 0.7)
    page.screenshot("isolated")


def test_a_line_goes_on_as_a_line_beside_a_gap(alone, place):
    place.begin(1)
    place.report(1, points([0.1, 0.2, 0.3, None, 0.3, 0.2]))
    page = alone().show(place)
    page.until(lambda: page.ink(BLUE) > 500)
    page.screenshot("gap")


@pytest.mark.parametrize("value", [0.8231, 0.0, -12.5, 3e-7])
def test_a_value_alone_stands_in_the_middle_of_its_chart(alone, place, value):
    place.begin(1)
    place.report(1, [("loss", 40, value)])
    page = alone().show(place)
    page.until(lambda: page.ink(BLUE) > 0)
    across, down = page.middle(BLUE)
    assert 0.4 < across < 0.6
    assert 0.3 < down < 0.6
    assert page.errors == []


def test_values_at_the_ends_of_what_a_number_can_be_are_drawn_without_a_fault(alone, place):
    place.begin(1)
    place.report(1, points([1e308, -1e308, 1.0, 5e-324]))
    page = alone().show(place)
    page.until(lambda: page.ink(BLUE) > 100)
    page.screenshot("extreme")
    assert page.errors == []
