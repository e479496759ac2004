"""Population-based training: a population of trials, generation after generation, each from a checkpoint of the last.

After Jaderberg et al., 2017, "Population Based Training of Neural Networks": a member among the worst of its generation
goes on from the checkpoint of one of the best (exploit), with that one's parameters a little changed (explore); any
other member goes on from its own. A generation begins when the one before has ended, so each trial follows from the
seed, its number and that generation: the search is the same at any concurrency and after a restart.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.objective import Direction
from jupyter_autotrain.core.space import Choice, Distribution, ParamValues, RandInt, Uniform, from_unit, round_to
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.core.tuner import Observation
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.tuners.coordinates import Coordinate, build, generator, read_back


@dataclass(frozen=True, slots=True)
class PopulationOptions:
    """The options of the search.

    Attributes:
        population_size: How many members a generation has.
        quantile_fraction: The share of a generation that is replaced, by members of the best such share.
        resample_probability: How often a parameter is drawn anew in place of being changed a little.
        factor: A number that is changed becomes so many times larger or smaller.
    """

    population_size: int
    quantile_fraction: float = 0.2
    resample_probability: float = 0.25
    factor: float = 1.2


_RANGES: Final = {
    "population_size": (2, 10_000),
    "quantile_fraction": (0.01, 0.5),
    "resample_probability": (0.0, 1.0),
    "factor": (1.0, 10.0),
}


def read_options(options: JsonObject) -> PopulationOptions:
    """Return the options as they are written in `tuner:`.

    Raises:
        AutotrainError: There is no such option, or its value is out of range.
    """
    size = 10
    shares: dict[str, float] = {}
    for name, value in options.items():
        if name not in _RANGES:
            near = closest_match(name, _RANGES)
            known = f"Did you mean {near!r}?" if near else f"It has {', '.join(_RANGES)}."
            raise AutotrainError(f"pbt has no option {name!r}.", known, "Correct it.")
        low, high = _RANGES[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise AutotrainError(f"pbt: {name} is {value!r}.", f"Expected: {low:g} to {high:g}.", "Correct it.")
        if name == "population_size":
            size = int(value)
        else:
            shares[name] = float(value)
    return PopulationOptions(size, **shares)


@dataclass(frozen=True, slots=True)
class _Member:
    """The parameters of a trial, and the trial that it goes on from."""

    params: ParamValues
    source: int | None = None


class PopulationTuner:
    """The search; trial `number` is member `(number - 1) % population_size` of its generation.

    Raises:
        AutotrainError: An option is wrong, or there is no objective to compare members by.
    """

    def __init__(self, spec: ExperimentSpec) -> None:
        self._options = read_options(spec.tuner_options)
        if spec.objective is None:
            raise AutotrainError(
                "pbt without an objective.", "It compares trials by one.", "Add `objective: maximize METRIC`."
            )
        self._sign = -1.0 if spec.objective.direction is Direction.MAXIMIZE else 1.0
        self._space = spec.search
        self._seed = spec.seed
        self._seen: dict[int, Observation] = {}
        self._last: tuple[int, _Member] | None = None

    def tell(self, trial: Observation) -> None:
        """Keep what is known of the trial."""
        self._seen[trial.number] = trial

    def is_ready(self, number: int) -> bool:
        """Return whether the generation before that of trial `number` has ended."""
        return all(trial.state.is_final for trial in self._generation_before(number))

    def ask(self, number: int) -> ParamValues | None:
        """Give the parameters of the trial; of members that go on from their own checkpoint they stay."""
        return self._member(number).params

    def source(self, number: int) -> int | None:
        """Return the trial whose checkpoint the trial goes on from; None in the first generation."""
        return self._member(number).source

    def _member(self, number: int) -> _Member:
        if self._last is None or self._last[0] != number or number in self._seen:
            self._last = (number, self._next(number))
        return self._last[1]

    def _generation_before(self, number: int) -> list[Observation]:
        size = self._options.population_size
        first = (number - 1) // size * size + 1
        numbers = range(first - size, first)
        return [self._seen[one] for one in numbers if one in self._seen]

    def _next(self, number: int) -> _Member:
        rng = generator(self._seed, number)
        ranked = [trial for trial in self._generation_before(number) if trial.values is not None]
        ranked.sort(key=lambda trial: (self._sign * (trial.value or 0.0), trial.number))
        if not ranked:
            return _Member(build(self._space, lambda _, distribution: _draw(distribution, rng)))
        own = number - self._options.population_size
        replaced = max(int(len(ranked) * self._options.quantile_fraction), 1)
        kept = {trial.number for trial in ranked[: max(len(ranked) - replaced, 1)]}
        if own in kept:
            return _Member(self._seen[own].params, own)
        best = rng.choice(ranked[:replaced])
        return _Member(self._explored(best.params, rng), best.number)

    def _explored(self, params: ParamValues, rng: random.Random) -> ParamValues:
        known = read_back(self._space, params)

        def pick(path: str, distribution: Distribution) -> Coordinate:
            if path not in known or rng.random() < self._options.resample_probability:
                return _draw(distribution, rng)
            is_up = rng.random() < 0.5
            return _moved(distribution, known[path][1], self._options.factor if is_up else 1 / self._options.factor)

        return build(self._space, pick)


def _draw(distribution: Distribution, rng: random.Random) -> Coordinate:
    if isinstance(distribution, Choice):
        return rng.randrange(len(distribution.options))
    if isinstance(distribution, RandInt):
        return rng.randrange(distribution.low, distribution.high)
    return from_unit(distribution, rng.random())


def _moved(distribution: Distribution, value: Coordinate, factor: float) -> Coordinate:
    """Return a value a little larger or smaller; an option that is no number stays, of numbers it is the next one."""
    step = 1 if factor > 1 else -1
    if isinstance(distribution, Choice):
        is_ordered = all(map(_is_number, distribution.options))
        return min(max(int(value) + step * is_ordered, 0), len(distribution.options) - 1)
    if isinstance(distribution, RandInt):
        moved = round(value * factor)
        moved = int(value) + step if moved == value else moved
        return min(max(moved, distribution.low), distribution.high - 1)
    moved_to = round_to(value * factor, distribution.q)
    return min(max(moved_to, distribution.low), distribution.high) if isinstance(distribution, Uniform) else moved_to


def _is_number(option: object) -> bool:
    return isinstance(option, int | float) and not isinstance(option, bool)
