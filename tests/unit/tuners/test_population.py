"""Population-based training: what each trial goes on from, and with which parameters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_autotrain import tuners
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import Choice, RandInt, Uniform, lies_in
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.core.tuner import GenerationTuner, Observation
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.testing.tuners import TunerContract

SPACE = {"rate": Uniform(1e-4, 1.0, log=True), "width": Choice((16, 32, 64)), "depth": RandInt(1, 9)}
SPEC = ExperimentSpec(
    "x", Bundle(), search=SPACE, tuner="pbt", seed=5, objective=Objective("acc", Direction.MAXIMIZE),
    tuner_options={"population_size": 5},
)  # fmt: skip


class TestPopulation(TunerContract):
    def create(self, spec):
        return tuners.create(replace(spec, tuner="pbt"))


def ended(number, params, value):
    state = TrialState.FAILED if value is None else TrialState.SUCCEEDED
    return Observation(number, params, state, value)


def generations(values, spec=SPEC):
    """Play trials that end with these values; gives the tuner, and the parameters and source of each."""
    tuner = tuners.create(spec)
    found = {}
    for number, value in enumerate(values, 1):
        assert tuner.is_ready(number)
        found[number] = (tuner.ask(number), tuner.source(number))
        tuner.tell(ended(number, found[number][0], value))
    return tuner, found


def test_the_worst_member_goes_on_from_the_best_and_all_others_from_themselves():
    _, found = generations([0.1, 0.5, 0.9, 0.4, 0.3] * 2)
    assert [found[number][1] for number in range(1, 11)] == [None] * 5 + [3, 2, 3, 4, 5]
    assert [found[number][0] == found[number - 5][0] for number in range(6, 11)] == [False, True, True, True, True]
    assert lies_in(SPACE, found[6][0])
    assert found[6][0] != found[3][0]


def test_a_member_that_failed_goes_on_from_the_best_and_a_lost_generation_begins_anew():
    _, found = generations([0.5, None, 0.9, 0.8, 0.7, *[None] * 5, 0.1])
    assert [found[number][1] for number in (7, 11)] == [3, None]


def test_a_generation_waits_for_the_end_of_the_one_before():
    tuner, found = generations([0.1, 0.2, 0.3, 0.4])
    tuner.tell(Observation(5, tuner.ask(5), TrialState.RUNNING))
    assert isinstance(tuner, GenerationTuner)
    assert not tuner.is_ready(6)
    tuner.tell(ended(5, found[1][0], 0.5))
    assert tuner.is_ready(6)


def test_numbers_stay_in_the_space_however_often_they_are_changed():
    space = {**SPACE, "share": Uniform(0.0, 1.0, q=0.25), "kind": Choice(("a", "b"))}
    _, found = generations([0.1, 0.2, 0.3, 0.4, 0.5] * 20, replace(SPEC, search=space))
    assert all(lies_in(space, params) for params, _ in found.values())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"population_size": 1}, "population_size is 1"),
        ({"quantile_fraction": 0.9}, "quantile_fraction is 0.9"),
        ({"populationsize": 4}, "Did you mean 'population_size'"),
        ({"factor": "x"}, "factor is 'x'"),
    ],
)
def test_a_wrong_option_is_told_at_submit(options, says):
    with pytest.raises(AutotrainError, match=says.replace("?", r"\?")):
        tuners.check(replace(SPEC, tuner_options=options))


def test_it_needs_an_objective():
    with pytest.raises(AutotrainError, match="pbt without an objective"):
        tuners.check(replace(SPEC, objective=None))
