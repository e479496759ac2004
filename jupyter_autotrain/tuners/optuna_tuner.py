"""Search by a sampler of Optuna. This module loads Optuna; it is loaded when first needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna import Study as OptunaStudy
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from jupyter_autotrain.agent.states import TrialState as State
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.space import ParamValues, is_finite
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.tuner import Observation
from jupyter_autotrain.tuners.coordinates import generator
from jupyter_autotrain.tuners.enumeration import UntriedPoints
from jupyter_autotrain.tuners.samplers import Sampling
from jupyter_autotrain.tuners.study import Study

_LARGEST = 2**62


class OptunaTuner:
    """Bridge to a sampler: for each trial a new one with a seed by the trial's number, over one growing study.

    No point of a finite space is given twice: in place of one that was tried comes the next untried one of the grid.
    """

    def __init__(self, spec: ExperimentSpec, sampling: Sampling) -> None:
        self._space = spec.search
        self._seed = spec.seed
        self._objectives = spec.objectives or (Objective("value"),)
        self._sampling = sampling
        self._untried = UntriedPoints(spec.search) if is_finite(spec.search) else None
        self._seen: dict[int, Observation] = {}
        self._study: Study | None = None
        self._known: Mapping[str, BaseDistribution] | None = None
        self._last: tuple[int, ParamValues] | None = None
        for trial in _earlier(spec):
            self.tell(trial)

    def tell(self, trial: Observation) -> None:
        """Add to the study what is known; a trial that has ended and changes again has the study built anew."""
        before = self._seen.get(trial.number)
        if before == trial:
            return
        self._seen[trial.number] = trial
        if self._untried is not None:
            self._untried.add_trial(trial)
        if self._study is None:
            return
        if (before is not None and before.state.is_final) or trial.number not in self._study:
            self._study = None
        else:
            self._study.end(trial)

    def ask(self, number: int) -> ParamValues | None:
        """Suggest from what was told."""
        if not self._space:
            return {}
        if self._last is not None and self._last[0] == number and number not in self._seen:
            return self._last[1]
        try:
            params = self._ask(number)
        except Exception:
            self._study = None  # whatever it holds now
            raise
        self._last = None if params is None else (number, params)
        return params

    def _ask(self, number: int) -> ParamValues | None:
        if self._study is None:
            self._study = self._build()
        params: ParamValues | None = self._study.begin(number, self._sampler(number))
        if params is not None and self._untried is not None and not self._untried.contains(params):
            params = self._untried.first_from(generator(self._seed, number).randrange(_LARGEST))
        if params is None:
            self._study = None
        else:
            self._study.replace_params(number, params)
        return params

    def _build(self) -> Study:
        study = Study(self._space, self._objectives, self._sampling.newest)
        for number in sorted(self._seen):
            study.add(self._seen[number], None if self._sampling.is_memoryless else self._sampler(number))
        return study

    def _sampler(self, number: int) -> BaseSampler:
        seed = generator(self._seed, number).getrandbits(32)
        sampler = self._sampling.create(seed, self._seed or 0)
        if self._sampling.is_from_hub:
            return sampler
        if self._known is None:
            probe = self._sampling.create(seed, self._seed or 0)
            self._known = Study(self._space, self._objectives, None).relative_space(probe)
        return _OfKnownSpace(sampler, self._known)


def _earlier(spec: ExperimentSpec) -> list[Observation]:
    """Return the trials of a study that the search goes on from, under numbers up to 0."""
    given = spec.tuner_options.get("earlier")
    trials = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    found = []
    for number, trial in enumerate(trials, 1 - len(trials)):
        params: Any = trial["params"]
        values: Any = trial["values"]
        found.append(Observation(number, params, State.SUCCEEDED, values[0], tuple(values[1:])))
    return found


class _OfKnownSpace(BaseSampler):
    """A sampler that is told the space, which it otherwise finds by going through all trials."""

    def __init__(self, sampler: BaseSampler, known: Mapping[str, BaseDistribution]) -> None:
        self._sampler = sampler
        self._known = known

    def infer_relative_search_space(
        self,
        study: OptunaStudy,  # noqa: ARG002 - Optuna's contract
        trial: FrozenTrial,  # noqa: ARG002 - Optuna's contract
    ) -> dict[str, BaseDistribution]:
        return dict(self._known)

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 - as in Optuna
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        self._sampler.before_trial(study, trial)

    def after_trial(
        self,
        study: OptunaStudy,
        trial: FrozenTrial,
        state: TrialState,
        values: Any,  # noqa: ANN401 - as in Optuna
    ) -> None:
        self._sampler.after_trial(study, trial, state, values)
