"""Search algorithms that visit given points one after another: a grid, and a list of configurations."""

from __future__ import annotations

import json
from collections.abc import Mapping

from jupyter_autotrain.core.space import ParamValues, SearchSpace, count_points, point_at
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.tuner import Observation


class UntriedPoints:
    """The points of a space's grid that no trial was given yet."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._size = count_points(space)
        self._tried: set[str] = set()

    def add_trial(self, trial: Observation) -> None:
        """Count the parameters of a trial as tried."""
        self._tried.add(_text(trial.params))

    def contains(self, params: ParamValues) -> bool:
        """Tell whether no trial was given these parameters."""
        return _text(params) not in self._tried

    def first_from(self, index: int) -> ParamValues | None:
        """Return the first untried point from a number on (from 0), going round; None when all are tried.

        O(tried) at worst, and O(1) where the points from there on are untried.
        """
        for step in range(min(self._size, len(self._tried) + 1)):
            params = point_at(self._space, (index + step) % self._size)
            if self.contains(params):
                return params
        return None


def _text(params: ParamValues) -> str:
    return json.dumps(params, sort_keys=True, default=list)


class GridTuner:
    """Every point of the space once, the last name varying fastest; axes without steps are cut into five."""

    def __init__(self, spec: ExperimentSpec) -> None:
        self._space = spec.search
        self._points = UntriedPoints(spec.search)

    def ask(self, number: int) -> ParamValues | None:
        """Give point `number`, or the next one that no other trial has; None when all points were given."""
        return self._points.first_from(number - 1) if self._space else {}

    def tell(self, trial: Observation) -> None:
        """Remember the point as given."""
        self._points.add_trial(trial)


class BatchTuner:
    """Whole configurations one after another: the options of the space's one `choice`.

    An option that is a mapping is the trial's parameters; any other is the parameter of the choice's name.
    """

    def __init__(self, spec: ExperimentSpec) -> None:
        self._space: SearchSpace = spec.search

    def ask(self, number: int) -> ParamValues | None:
        """Give configuration `number`, or None when all were given."""
        if not self._space:
            return {}
        if number > count_points(self._space):
            return None
        params = point_at(self._space, number - 1)
        ((_, only),) = params.items() if len(params) == 1 else (("", None),)
        return only if isinstance(only, Mapping) and "_name" not in only else params

    def tell(self, trial: Observation) -> None:
        """Learn nothing: the list is given."""
