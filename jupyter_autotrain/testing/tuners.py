"""The contract of a search algorithm as tests: subclass `TunerContract` and say how one is made.

```python
class TestMyTuner(TunerContract):
    def create(self, spec): return MyTuner(spec)
```
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import (
    Choice,
    Distribution,
    NestedSpace,
    Normal,
    ParamValues,
    RandInt,
    SearchSpace,
    Uniform,
)
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.core.states import TrialState
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


def lies_in(space: SearchSpace, params: ParamValues) -> bool:
    """True when the parameters are a point of the space: all names, no other, each value allowed."""
    return params.keys() == space.keys() and all(_allowed(space[name], value) for name, value in params.items())


def _allowed(distribution: Distribution, value: JsonValue) -> bool:
    if isinstance(distribution, Choice):
        return any(_is_option(option, value) for option in distribution.options)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    if isinstance(distribution, RandInt):
        return isinstance(value, int) and distribution.low <= value < distribution.high
    if isinstance(distribution, Normal):
        return (value >= 0 or not distribution.log) and _is_multiple(value, distribution.q)
    at_bound = value in {distribution.low, distribution.high}
    return distribution.low <= value <= distribution.high and (at_bound or _is_multiple(value, distribution.q))


def _is_option(option: NestedSpace | JsonValue, value: JsonValue) -> bool:
    if isinstance(option, NestedSpace):
        if not isinstance(value, Mapping) or value.get("_name") != option.name:
            return False
        return lies_in(option.space, {key: item for key, item in value.items() if key != "_name"})
    return type(option) is type(value) and option == value


def _is_multiple(value: float, q: float | None) -> bool:
    return q is None or math.isclose(round(value / q) * q, value, rel_tol=1e-9, abs_tol=1e-12)


class TunerContract:
    """What every search algorithm must keep; `space` may be narrowed by a subclass."""

    space: SearchSpace = SPACE
    trials = 25

    def create(self, spec: ExperimentSpec) -> Tuner:
        """Make the algorithm under test."""
        raise AssertionError(f"{type(self).__name__} must say how a tuner for {spec.name!r} is made")

    def spec(self) -> ExperimentSpec:
        """An experiment over `space`, with a seed."""
        objective = Objective("loss", Direction.MINIMIZE)
        return ExperimentSpec("contract", Bundle(), search=self.space, objective=objective, seed=7)

    def play(self, tuner: Tuner, trials: int) -> list[Observation]:
        """Run an experiment in which every fourth trial fails and every fifth is still running."""
        history: list[Observation] = []
        for number in range(1, trials + 1):
            params = tuner.suggest(number, history)
            if params is None:
                break
            history.append(_outcome(number, params))
        return history

    def test_every_suggestion_lies_in_the_space(self) -> None:
        """All names, no other, each value allowed."""
        for seen in self.play(self.create(self.spec()), self.trials):
            assert lies_in(self.space, seen.params), seen.params

    def test_a_restarted_manager_gets_the_same_suggestion(self) -> None:
        """The same seed, number and history give the same parameters, also after a walk through JSON."""
        tuner = self.create(self.spec())
        history = self.play(tuner, self.trials)
        stored = [replace(seen, params=json.loads(json.dumps(seen.params))) for seen in history]
        number = len(history) + 1
        assert self.create(self.spec()).suggest(number, stored) == tuner.suggest(number, history)

    def test_asking_twice_changes_nothing(self) -> None:
        """A suggestion leaves no memory behind."""
        tuner = self.create(self.spec())
        history = self.play(self.create(self.spec()), 12)
        assert tuner.suggest(13, history) == tuner.suggest(13, history)

    def test_a_seed_gives_different_trials(self) -> None:
        """The trials of one experiment are not all the same."""
        history = self.play(self.create(self.spec()), 6)
        assert len({json.dumps(seen.params) for seen in history}) > 1

    def test_values_that_are_no_numbers_are_survived(self) -> None:
        """NaN and infinite objective values teach nothing and break nothing."""
        tuner = self.create(self.spec())
        history = [replace(seen, value=math.nan if seen.number % 2 else math.inf) for seen in self.play(tuner, 12)]
        params = tuner.suggest(len(history) + 1, history)
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
