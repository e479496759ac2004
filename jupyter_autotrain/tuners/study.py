"""An experiment's trials as a study of Optuna. This module loads Optuna; it is loaded when first needed."""

from __future__ import annotations

import copy
import heapq
import math
from collections.abc import Container, Mapping, Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import (
    Choice,
    Distribution,
    Normal,
    ParamValues,
    RandInt,
    SearchSpace,
    Uniform,
    from_unit,
    round_to,
)
from jupyter_autotrain.core.tuner import Observation
from jupyter_autotrain.tuners.coordinates import Coordinate, build, read_back, to_unit

_BEST = 100  # older trials of the best values that stay visible, of each objective
_DIRECTIONS = {
    Direction.MAXIMIZE: optuna.study.StudyDirection.MAXIMIZE,
    Direction.MINIMIZE: optuna.study.StudyDirection.MINIMIZE,
}
_EDGE = 1e-6  # shares of a normal distribution left out at both ends


class TrialStorage(InMemoryStorage):
    """Optuna's trials in memory, whose parameters may be replaced, and of which a sampler may see only some.

    Args:
        newest: A sampler sees so many of the newest trials, and of those before them the best; None: all.
    """

    def __init__(self, newest: int | None) -> None:
        super().__init__()
        self._newest = newest

    def replace_params(
        self, trial_id: int, params: Mapping[str, Coordinate], distributions: Mapping[str, BaseDistribution]
    ) -> None:
        """Replace the parameters of a running trial."""
        trial = copy.copy(self.get_trial(trial_id))
        trial.params = dict(params)
        trial.distributions = dict(distributions)
        self._set_trial(trial_id, trial)

    def set_reports(self, trial_id: int, reports: Mapping[int, float], *, is_judged: bool) -> None:
        """Give a trial its reports, by step; one that is not judged counts as complete."""
        trial = copy.copy(self.get_trial(trial_id))
        trial.intermediate_values = dict(reports)
        trial.values = [*reports.values()][-1:] or [math.nan]
        trial.state = TrialState.RUNNING if is_judged else TrialState.COMPLETE
        self._set_trial(trial_id, trial)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """Return the trials that samplers see, by number. O(trials)."""
        trials = super().get_all_trials(study_id, deepcopy=False, states=states)
        if self._newest is not None and len(trials) > self._newest:
            signs = [1 if one.name == "MINIMIZE" else -1 for one in self.get_study_directions(study_id)]
            trials = [*_best(trials[: -self._newest], signs), *trials[-self._newest :]]
        return copy.deepcopy(trials) if deepcopy else trials


def _best(trials: Sequence[FrozenTrial], signs: Sequence[int]) -> list[FrozenTrial]:
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    found: dict[int, FrozenTrial] = {}
    for position, sign in enumerate(signs):
        best = heapq.nsmallest(_BEST, complete, key=lambda trial: sign * trial.values[position])
        found.update((trial.number, trial) for trial in best)
    return [found[number] for number in sorted(found)]


class Study:
    """A study that grows with the experiment, so that nothing is rebuilt for a suggestion.

    Args:
        space: The search space.
        objectives: What is optimized; at least one.
        newest: See `TrialStorage`.
    """

    def __init__(self, space: SearchSpace, objectives: Sequence[Objective], newest: int | None) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._space = space
        self._storage = TrialStorage(newest)
        self._study = optuna.create_study(
            storage=self._storage, directions=[_DIRECTIONS[one.direction] for one in objectives]
        )
        self._id = self._storage.get_study_id_from_name(self._study.study_name)
        self._positions: dict[int, int] = {}  # in the study, by the trial's number

    def begin(self, number: int, sampler: optuna.samplers.BaseSampler) -> ParamValues:
        """Let a sampler make the parameters of a new trial."""
        trial = self._new_trial(number, sampler)
        return build(self._space, lambda path, distribution: _suggest(trial, path, distribution))

    def add(self, trial: Observation, sampler: optuna.samplers.BaseSampler | None) -> None:
        """Add a trial that exists; a sampler that keeps notes on each trial makes them now."""
        if sampler is not None:
            self._new_trial(trial.number, sampler).relative_params  # noqa: B018 - reading it has the sampler at work
        else:
            trial_id = self._storage.create_new_trial(self._id)
            self._positions[trial.number] = self._storage.get_trial_number_from_id(trial_id)
        self.replace_params(trial.number, trial.params)
        self.end(trial)

    def _new_trial(self, number: int, sampler: optuna.samplers.BaseSampler) -> optuna.Trial:
        self._study.sampler = sampler
        trial = self._study.ask()
        self._positions[number] = trial.number
        return trial

    def relative_space(self, sampler: optuna.samplers.BaseSampler) -> dict[str, BaseDistribution]:
        """Return what a sampler samples together once trials are known: parameters that every trial has."""
        distributions = {name: outer_distribution(one) for name, one in self._space.items()}
        params = {name: _any_value(one) for name, one in distributions.items()}
        trial = optuna.trial.create_trial(values=[0.0] * len(self._study.directions), params=params,
                                          distributions=distributions)  # fmt: skip
        self._study.add_trial(trial)
        return sampler.infer_relative_search_space(self._study, trial)

    def snapshot(self) -> optuna.Study:
        """Return the study as Optuna evaluates it."""
        return self._study

    def __contains__(self, number: int) -> bool:
        return number in self._positions

    def replace_params(self, number: int, params: ParamValues) -> None:
        """Keep the parameters that a trial really has, as the store will give them back."""
        found = read_back(self._space, params)
        inner = {path: _inner(distribution, value) for path, (distribution, value) in found.items()}
        outer = {path: outer_distribution(distribution) for path, (distribution, _) in found.items()}
        self._storage.replace_params(self._trial_id(number), inner, outer)

    def _trial_id(self, number: int) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._id, self._positions[number])

    def end(self, trial: Observation) -> None:
        """Take in the end of a trial; one that goes on is left as it is."""
        if not trial.state.is_final:
            return
        trial_id = self._trial_id(trial.number)
        for metric, violation in trial.violations.items():
            self._storage.set_trial_system_attr(trial_id, f"constraints:{metric}", violation)
        position = self._positions[trial.number]
        if trial.values is None:
            self._study.tell(position, state=TrialState.FAIL)
        else:
            self._study.tell(position, list(trial.values))


def outer_distribution(distribution: Distribution) -> BaseDistribution:
    """Return the distribution under Optuna: a choice's is its option's number, a normal one's its share in (0, 1)."""
    if isinstance(distribution, Choice):
        return CategoricalDistribution(tuple(range(len(distribution.options))))
    if isinstance(distribution, RandInt):
        return IntDistribution(distribution.low, distribution.high - 1)
    if isinstance(distribution, Normal):
        return FloatDistribution(_EDGE, 1 - _EDGE)
    return FloatDistribution(distribution.low, distribution.high, log=distribution.log)


def _any_value(distribution: BaseDistribution) -> Coordinate:
    if isinstance(distribution, FloatDistribution | IntDistribution):
        return distribution.low
    return 0


def _inner(distribution: Distribution, value: Coordinate) -> Coordinate:
    if isinstance(distribution, Normal):
        return min(max(to_unit(distribution, value), _EDGE), 1 - _EDGE)
    return float(value) if isinstance(distribution, Uniform) else int(value)


def _suggest(trial: optuna.Trial, path: str, distribution: Distribution) -> Coordinate:
    if isinstance(distribution, Choice):
        return int(trial.suggest_categorical(path, range(len(distribution.options))))
    if isinstance(distribution, RandInt):
        return trial.suggest_int(path, distribution.low, distribution.high - 1)
    if isinstance(distribution, Normal):
        return from_unit(distribution, trial.suggest_float(path, _EDGE, 1 - _EDGE))
    value = trial.suggest_float(path, distribution.low, distribution.high, log=distribution.log)
    return min(max(round_to(value, distribution.q), distribution.low), distribution.high)
