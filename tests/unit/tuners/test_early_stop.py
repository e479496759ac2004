"""Early stopping: who is stopped, who goes on."""

import math

import pytest

from jupyter_autotrain import tuners
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError


def rule(name, direction=Direction.MAXIMIZE):
    return tuners.create_early_stop(ExperimentSpec("x", Bundle(), early_stop=name, objective=Objective("a", direction)))


def flat(value, steps=5):
    return [(step, value) for step in range(steps)]


GOOD = [flat(0.8), flat(0.9), flat(0.7)]


def test_a_trial_below_the_median_of_the_others_is_stopped():
    assert rule("median").should_stop(flat(0.1, 3), GOOD)
    assert not rule("median").should_stop(flat(0.85, 3), GOOD)


def test_when_less_is_better_the_higher_curve_is_stopped():
    assert rule("median", Direction.MINIMIZE).should_stop(flat(2.0, 3), GOOD)
    assert not rule("median", Direction.MINIMIZE).should_stop(flat(0.1, 3), GOOD)


def test_nothing_is_stopped_before_three_others_came_as_far():
    assert not rule("median").should_stop(flat(0.1, 5), [flat(0.9, 5), flat(0.9, 5), flat(0.9, 3)])


def test_the_first_report_is_never_judged_by_the_median():
    assert not rule("median").should_stop(flat(0.1, 1), GOOD)


@pytest.mark.parametrize("name", ["median", "asha"])
def test_a_trial_of_nothing_but_nan_is_stopped_among_good_ones(name):
    assert rule(name).should_stop(flat(math.nan), GOOD)


@pytest.mark.parametrize("name", ["median", "asha"])
def test_alone_a_trial_goes_on(name):
    assert not rule(name).should_stop(flat(0.1), [])


def test_asha_lets_the_best_third_of_a_rung_go_on():
    values = [i / 9 for i in range(9)]
    verdicts = [rule("asha").should_stop(flat(v, 3), [flat(o, 3) for o in values if o != v]) for v in values]
    assert verdicts == [True] * 6 + [False] * 3


def test_asha_judges_at_rungs_even_when_reports_come_in_bulk():
    late_bloomer = [(0, 0.0), (1, 0.0), (2, 0.0), (3, 1.0), (4, 1.0)]
    assert rule("asha").should_stop(late_bloomer, GOOD)


def test_no_rule_or_no_objective_means_no_stopping():
    assert rule("none") is None
    assert tuners.create_early_stop(ExperimentSpec("x", Bundle(), early_stop="asha")) is None


def test_an_unknown_rule_names_those_there_are():
    with pytest.raises(AutotrainError, match="none, median, asha"):
        rule("hyperband")
