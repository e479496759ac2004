"""Early stopping: who is stopped, who goes on."""

import math

import pytest

from jupyter_autotrain import tuners
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.core.tuner import EarlyStopOptions, StopReason
from jupyter_autotrain.errors import AutotrainError

MIN = Direction.MINIMIZE


def rule(name, direction=Direction.MAXIMIZE, **options):
    options = EarlyStopOptions(**options)
    objective = Objective("a", direction)
    spec = ExperimentSpec("x", Bundle(), early_stop=name, early_stop_options=options, objective=objective)
    return tuners.create_early_stop(spec)


def numbered(curves):
    return dict(enumerate(curves, 2))


def is_stopped(name, curve, others, direction=Direction.MAXIMIZE, **options):
    return rule(name, direction, **options).reason_to_stop(1, curve, numbered(others)) is not None


def flat(value, steps=5):
    return [(step, value) for step in range(steps)]


GOOD = [flat(0.8), flat(0.9), flat(0.7)]


def test_a_trial_below_the_median_of_the_others_is_stopped_and_told_what_it_was_compared_with():
    assert rule("median").reason_to_stop(1, flat(0.1, 3), numbered(GOOD)) == StopReason(
        2, 0.1, "median of 3 trials at this step 0.8"
    )
    assert not is_stopped("median", flat(0.85, 3), GOOD)


def test_when_less_is_better_the_higher_curve_is_stopped():
    assert is_stopped("median", flat(2.0, 3), GOOD, MIN)
    assert not is_stopped("median", flat(0.1, 3), GOOD, MIN)


def test_nothing_is_stopped_before_three_others_came_as_far():
    assert not is_stopped("median", flat(0.1, 5), [flat(0.9, 5), flat(0.9, 5), flat(0.9, 3)])


def test_others_are_compared_at_the_same_step_not_at_their_end():
    late = [[(0, 0.1), (1, 0.1), (2, 0.9), (3, 0.9)]] * 3
    assert not is_stopped("median", [(0, 0.2), (1, 0.2)], late)
    assert is_stopped("median", [(0, 0.2), (1, 0.2), (2, 0.2)], late)


@pytest.mark.parametrize("name", ["median", "asha"])
def test_no_trial_is_stopped_before_its_warm_up_is_over(name):
    for steps in (1, 3, 5):
        assert not is_stopped(name, flat(0.1, steps), GOOD, warmup_steps=5)
    nine = [flat(value, 12) for value in (0.8, 0.9, 0.7)]
    assert is_stopped(name, flat(0.1, 9), nine, warmup_steps=5)


@pytest.mark.parametrize("name", ["median", "asha"])
def test_min_trials_says_how_many_others_must_have_come_as_far(name):
    assert not is_stopped(name, flat(0.1), GOOD, min_trials=4)
    assert is_stopped(name, flat(0.1), GOOD, min_trials=3)
    assert is_stopped(name, flat(0.1), GOOD[:1], min_trials=1)


def test_the_first_report_is_never_judged_by_the_median():
    assert not is_stopped("median", flat(0.1, 1), GOOD)


@pytest.mark.parametrize("name", ["median", "asha"])
def test_a_trial_of_nothing_but_nan_is_stopped_among_good_ones(name):
    assert is_stopped(name, flat(math.nan), GOOD)


@pytest.mark.parametrize("name", ["median", "asha"])
def test_trials_of_nothing_but_nan_stop_nobody(name):
    assert not is_stopped(name, flat(0.1), [flat(math.nan)] * 5)


@pytest.mark.parametrize("name", ["median", "asha"])
def test_alone_a_trial_goes_on(name):
    assert not is_stopped(name, flat(0.1), [])


@pytest.mark.parametrize(("direction", "stopped"), [(Direction.MAXIMIZE, [True] * 6 + [False] * 3),
                                                     (MIN, [False] * 3 + [True] * 6)])  # fmt: skip
def test_asha_lets_the_best_third_of_a_rung_go_on(direction, stopped):
    values = [i / 9 for i in range(9)]
    found = []
    for value in values:
        rivals = [flat(other, 3) for other in values if other != value]
        found.append(is_stopped("asha", flat(value, 3), rivals, direction))
    assert found == stopped


def test_asha_says_at_which_rung_and_against_whom():
    reason = rule("asha").reason_to_stop(1, flat(0.1, 3), numbered(GOOD))
    assert reason == StopReason(0, 0.1, "the best 1 of 4 trials continue after report 1: 0.9 or better")


def test_asha_judges_at_rungs_even_when_reports_come_in_bulk():
    late_bloomer = [(0, 0.0), (1, 0.0), (2, 0.0), (3, 1.0), (4, 1.0)]
    assert is_stopped("asha", late_bloomer, GOOD)


def test_no_rule_or_no_objective_means_no_stopping():
    assert rule("none") is None
    assert tuners.create_early_stop(ExperimentSpec("x", Bundle(), early_stop="asha")) is None


def test_an_unknown_rule_names_those_there_are():
    with pytest.raises(AutotrainError, match="none, median, asha"):
        rule("hyperbandit")


@pytest.mark.parametrize("name", ["median", "asha"])
def test_the_largest_numbers_are_compared_too(name):
    assert rule(name).reason_to_stop(1, flat(0.0), numbered([flat(1.7e308)] * 5)) is not None


def rising(limit, reports, rate=1.0):
    return [(n - 1, limit - limit * n**-rate) for n in range(1, reports + 1)]


def test_hyperband_compares_trials_of_one_bracket_from_its_first_rung_on():
    good = {number: flat(0.9, 30) for number in range(10, 30)}
    stopped = {}
    for number in (3, 4, 5):
        stops = [n for n in range(1, 31) if rule("hyperband").reason_to_stop(number, flat(0.1, n), good)]
        stopped[number] = stops[0]
    assert stopped == {3: 1, 4: 3, 5: 9}
    same_bracket = {number: flat(0.9, 30) for number in (6, 9)}
    assert rule("hyperband").reason_to_stop(3, flat(0.1, 9), same_bracket)
    assert not rule("hyperband").reason_to_stop(4, flat(0.1, 9), same_bracket)


def test_a_threshold_stops_what_leaves_its_bounds_and_what_is_no_number():
    assert is_stopped("threshold", flat(6.0), [], upper=5.0)
    assert is_stopped("threshold", flat(-1.0), [], lower=0.0)
    assert is_stopped("threshold", flat(math.nan), [])
    assert not is_stopped("threshold", flat(3.0), [], lower=0.0, upper=5.0)
    assert not is_stopped("threshold", flat(6.0), [], upper=5.0, warmup_steps=9)


def test_patience_stops_what_becomes_no_better_and_lets_the_slow_go_on():
    assert is_stopped("patience", [*rising(1, 4), *((step, 0.5) for step in range(4, 9))], [], patience=5)
    assert not is_stopped("patience", rising(1, 20), [], patience=5)
    assert is_stopped("patience", rising(1, 20), [], patience=5, min_delta=0.2)
    assert not is_stopped("patience", flat(0.5, 5), [], patience=5)
    assert is_stopped("patience", flat(0.5, 6), [], patience=5)


def test_a_curve_that_goes_below_the_best_end_is_stopped_and_a_late_starter_is_not():
    ended = [rising(0.9, 60), rising(0.8, 60)]
    assert is_stopped("curve", rising(0.5, 20), ended)
    assert not is_stopped("curve", rising(0.95, 20, rate=0.8), ended)
    assert not is_stopped("curve", rising(0.5, 5), ended)
    falling = [(step, 2 - value) for step, value in rising(1.0, 20)]
    assert not is_stopped("curve", falling, [[(step, 2 - value) for step, value in rising(0.9, 60)]], MIN)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("MedianPruner", {"n_startup_trials": 1}),
        ("SuccessiveHalvingPruner", {"min_resource": 1}),
        ("ThresholdPruner", {"lower": 0.5}),
    ],
)
def test_any_pruner_of_optuna_judges_by_the_same_curves(name, options):
    judge = rule(f"optuna:{name}", options=options)
    curves = {number: flat(value, 6) for number, value in ((2, 0.8), (3, 0.9), (4, 0.7), (5, 0.75), (6, 0.85))}
    for number, curve in curves.items():
        for reports in range(1, 7):
            judge.reason_to_stop(number, curve[:reports], {key: one for key, one in curves.items() if key < number})
    reasons = [judge.reason_to_stop(7, flat(0.1, reports), curves) for reports in range(1, 5)]
    assert any(reason and name in reason.compared_with for reason in reasons)


def test_a_pruner_that_there_is_not_is_told_with_the_nearest():
    with pytest.raises(AutotrainError, match="Did you mean MedianPruner"):
        rule("optuna:MedianPrunr")
