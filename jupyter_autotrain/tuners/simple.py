"""Search algorithms that need no library: random, grid, batch, evolution. Loading them costs nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from jupyter_autotrain.core import grid
from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.objective import Direction
from jupyter_autotrain.core.space import Choice, Distribution, Normal, ParamValues, RandInt, SearchSpace
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.tuner import Observation
from jupyter_autotrain.tuners.sampling import Coordinate, build, draw, generator, read_back, to_unit


class RandomTuner:
    """Independent draws. O(names) per suggestion."""

    def __init__(self, spec: ExperimentSpec) -> None:
        self._space = spec.search
        self._seed = spec.seed

    def suggest(self, number: int, history: Sequence[Observation]) -> ParamValues | None:  # noqa: ARG002 - the contract's
        """Draw the parameters of trial `number`."""
        rng = generator(self._seed, number)
        return build(self._space, lambda _, distribution: draw(rng, distribution))


class GridTuner:
    """Every point of the space once, the last name varying fastest; axes without steps are cut into five."""

    def __init__(self, spec: ExperimentSpec) -> None:
        self._space = spec.search
        self._size = grid.count(spec.search)

    def suggest(self, number: int, history: Sequence[Observation]) -> ParamValues | None:  # noqa: ARG002 - the contract's
        """Give point `number`, or None when all points were given."""
        if not self._space:
            return {}
        return grid.point(self._space, number - 1) if number <= self._size else None


class BatchTuner:
    """Whole configurations one after another: the options of the space's one `choice`.

    An option that is a mapping is the trial's parameters; any other is the parameter of the choice's name.
    """

    def __init__(self, spec: ExperimentSpec) -> None:
        self._space: SearchSpace = spec.search

    def suggest(self, number: int, history: Sequence[Observation]) -> ParamValues | None:  # noqa: ARG002 - the contract's
        """Give configuration `number`, or None when all were given."""
        if not self._space:
            return {}
        if number > grid.count(self._space):
            return None
        params = grid.point(self._space, number - 1)
        ((_, only),) = params.items() if len(params) == 1 else (("", None),)
        return only if isinstance(only, Mapping) and "_name" not in only else params


class EvolutionTuner:
    """Aging evolution: the best of a few of the youngest trials is changed a little.

    Source: Real et al., Regularized Evolution for Image Classifier Architecture Search, AAAI 2019, algorithm 1.
    Random until `FIRST` trials have a value. O(history) per suggestion.
    """

    FIRST = 10
    POPULATION = 30
    TOURNAMENT = 10
    STEP = 0.15  # standard deviation of a change, as a share of the range

    def __init__(self, spec: ExperimentSpec) -> None:
        self._space = spec.search
        self._seed = spec.seed
        self._sign = -1 if spec.objective and spec.objective.direction is Direction.MINIMIZE else 1

    def suggest(self, number: int, history: Sequence[Observation]) -> ParamValues | None:
        """Change the winner of a tournament among the youngest trials."""
        rng = generator(self._seed, number)
        valued = [seen for seen in history if seen.value is not None and math.isfinite(seen.value)]
        if len(valued) < self.FIRST:
            return build(self._space, lambda _, distribution: draw(rng, distribution))
        young = sorted(valued, key=lambda seen: seen.number)[-self.POPULATION :]
        rivals = rng.sample(young, min(self.TOURNAMENT, len(young)))
        winner = max(rivals, key=lambda seen: self._sign * (seen.value or 0.0))
        return self._changed(winner.params, rng)

    def _changed(self, params: Mapping[str, JsonValue], rng: random.Random) -> ParamValues:
        parent = read_back(self._space, params)
        share = 1 / max(len(parent), 1)
        changed = {path for path in parent if rng.random() < share} or set(
            rng.sample(sorted(parent), min(1, len(parent)))
        )

        def pick(path: str, distribution: Distribution) -> Coordinate:
            if path not in parent:
                return draw(rng, distribution)
            return self._moved(distribution, parent[path][1], rng) if path in changed else parent[path][1]

        return build(self._space, pick)

    def _moved(self, distribution: Distribution, value: Coordinate, rng: random.Random) -> Coordinate:
        if isinstance(distribution, Choice):
            return draw(rng, distribution)
        if isinstance(distribution, RandInt):
            spread = max(1.0, self.STEP * (distribution.high - distribution.low))
            moved = int(value) + round(rng.gauss(0, spread))
            return min(max(moved, distribution.low), distribution.high - 1)
        u = to_unit(distribution, value) + rng.gauss(0, self.STEP)
        edge = 0.001 if isinstance(distribution, Normal) else 0.0
        return grid.from_unit(distribution, min(max(u, edge), 1 - edge))
