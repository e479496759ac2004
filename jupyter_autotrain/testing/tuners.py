"""The contract of a search algorithm as tests: subclass `TunerContract` and say how one is made.

```python
class TestMyTuner(TunerContract):
    def create(self, spec): return MyTuner(spec)
```
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import (
    Choice,
    NestedSpace,
    Normal,
    ParamValues,
    RandInt,
    SearchSpace,
    Uniform,
    lies_in,
)
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.core.tuner import Observation, Tuner

SPACE: SearchSpace = {
    "rate": Uniform(1e-4, 1e-1, log=True),
    "momentum": Uniform(0.0, 0.99),
    "dropout": Uniform(0.05, 0.62, q=0.1),
    "decay": Uniform(1e-6, 1e-2, log=True, q=1e-5),
    "layers": RandInt(1, 5),
    "shift": Normal(0.0, 1.0),
    "scale": Normal(0.0, 0.5, log=True),
    "stride": Normal(10.0, 3.0, q=2.0),
    "window": Normal(1.0, 0.5, log=True, q=0.5),
    "net": Choice((NestedSpace("mlp", {"width": Choice((32, 64)), "bias": Choice((True, False))}), "linear", None)),
}


class TunerContract:
    """The contract of every search algorithm; `space` may be narrowed by a subclass."""

    space: SearchSpace = SPACE
    trials = 25

    def create(self, spec: ExperimentSpec) -> Tuner:
        """Make the algorithm under test."""
        raise AssertionError(f"{type(self).__name__} must say how a tuner for {spec.name!r} is made")

    def spec(self) -> ExperimentSpec:
        """Return an experiment over `space`, with a seed."""
        objective = Objective("loss", Direction.MINIMIZE)
        return ExperimentSpec("contract", Bundle(), search=self.space, objective=objective, trials=30, seed=7)

    def play(self, tuner: Tuner, trials: int, history: Sequence[Observation] = ()) -> list[Observation]:
        """Go on with an experiment in which every fourth trial fails and every fifth is still running."""
        history = list(history)
        for number in range(len(history) + 1, trials + 1):
            params = tuner.ask(number)
            if params is None:
                break
            tuner.tell(Observation(number, params, TrialState.WAITING))
            history.append(_outcome(number, params))
            tuner.tell(history[-1])
        return history

    def resumed(self, history: Sequence[Observation]) -> Tuner:
        """Return a tuner that was told what the store has, as by a manager that takes the experiment up."""
        tuner = self.create(self.spec())
        for seen in history:
            tuner.tell(replace(seen, params=json.loads(json.dumps(seen.params))))
        return tuner

    def test_every_suggestion_lies_in_the_space(self) -> None:
        """All names, no other, each value allowed."""
        for seen in self.play(self.create(self.spec()), self.trials):
            assert lies_in(self.space, seen.params), seen.params

    def test_a_restarted_manager_gets_the_same_suggestion(self) -> None:
        """The same seed, number and history give the same parameters, also after a walk through JSON."""
        tuner = self.create(self.spec())
        history = self.play(tuner, self.trials)
        number = len(history) + 1
        assert self.resumed(history).ask(number) == tuner.ask(number)

    def test_ten_trials_and_fifteen_more_are_twenty_five(self) -> None:
        """An experiment that is gone on with has the trials that it would have had at once."""
        whole = self.play(self.create(self.spec()), 25)
        begun = self.play(self.create(self.spec()), 10)
        assert self.play(self.resumed(begun), 25, begun) == whole

    def test_asking_again_for_a_trial_gives_the_same(self) -> None:
        """A suggestion that was not used is given again."""
        tuner = self.create(self.spec())
        number = len(self.play(tuner, 6)) + 1
        assert tuner.ask(number) == tuner.ask(number)

    def test_a_trial_that_is_retried_after_its_end_is_told_again(self) -> None:
        """A trial may change after its end; what it was before is forgotten."""
        tuner = self.create(self.spec())
        history = self.play(tuner, 6)
        history[3] = replace(history[3], state=TrialState.SUCCEEDED, value=-1.0)
        tuner.tell(history[3])
        assert tuner.ask(7) == self.resumed(history).ask(7)

    def test_a_seed_gives_different_trials(self) -> None:
        """The trials of one experiment are not all the same."""
        history = self.play(self.create(self.spec()), 6)
        assert len({json.dumps(seen.params) for seen in history}) > 1

    def test_values_that_are_no_numbers_are_survived(self) -> None:
        """NaN and infinite objective values teach nothing and break nothing."""
        history = [
            replace(seen, value=math.nan if seen.number % 2 else math.inf)
            for seen in self.play(self.create(self.spec()), 6)
        ]
        params = self.resumed(history).ask(len(history) + 1)
        assert params is None or lies_in(self.space, params)


def _outcome(number: int, params: ParamValues) -> Observation:
    if number % 4 == 0:
        return Observation(number, params, TrialState.FAILED)
    if number % 5 == 0:
        return Observation(number, params, TrialState.RUNNING)
    return Observation(number, params, TrialState.SUCCEEDED, _height(params))


def _height(params: ParamValues) -> float:
    numbers: Sequence[float] = [v for v in params.values() if isinstance(v, int | float)]
    return math.fsum(value * value for value in numbers)
