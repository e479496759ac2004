"""Tests of how well later plans may be believed, by what was measured of earlier ones."""

import pytest

from jupyter_autotrain.core.measurement import Measurement, accuracy


def measured(predicted_s, family="Net", peak_bytes=(), step_s=(0.9, 1.0)):
    return Measurement(family, "DDP over 2", "2xlocal", ("local",), predicted_s, 110.0, step_s, peak_bytes)


def test_nothing_is_said_where_nothing_was_measured():
    assert accuracy([], "Net") is None


def test_the_largest_error_of_the_last_five_counts_by_the_slowest_rank():
    found = accuracy([measured(s) for s in (1.01, 0.98, 1.08, 1.0, 1.0, 3.0)], "Net")
    assert found.error == pytest.approx(0.08)
    assert str(found) == "The last 5 plans of Net measured here were predicted within 8%."


def test_other_families_count_where_there_are_too_few_of_one():
    found = accuracy([measured(1.01), measured(1.04, "Other"), measured(1.02, "Other")], "Net")
    assert (found.plans, found.family) == (3, "")
    assert accuracy([measured(1.5, "Other"), *[measured(1.01)] * 3], "Net").error == pytest.approx(0.01)


def test_memory_is_told_where_it_was_counted():
    found = accuracy([measured(1.02, peak_bytes=(90, 100))], "Net")
    assert str(found) == "The last plan of Net measured here was predicted within 2%, its memory within 10%."
