"""The tree-structured Parzen estimator, by Optuna. This module loads Optuna; it is loaded when first needed.

Optuna keeps a study between calls; here each call builds one from the history, so that a restarted manager continues
as if nothing had happened: the same seed, number and history give the same suggestion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from jupyter_autotrain.core.grid import from_unit, round_to
from jupyter_autotrain.core.objective import Direction
from jupyter_autotrain.core.ranking import ranked
from jupyter_autotrain.core.space import Choice, Distribution, Normal, ParamValues, RandInt, Uniform
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.tuner import Observation
from jupyter_autotrain.tuners.sampling import Coordinate, build, generator, read_back, to_unit

_REMEMBERED = 200  # trials shown to Optuna: the best ones and the latest
_EDGE = 1e-6  # shares of a normal distribution left out at both ends


class TpeTuner:
    """Bridge to `optuna.samplers.TPESampler` (multivariate, running trials counted as poor)."""

    def __init__(self, spec: ExperimentSpec) -> None:
        self._space = spec.search
        self._seed = spec.seed
        self._objective = spec.objective
        self._maximize = spec.objective is None or spec.objective.direction is Direction.MAXIMIZE
        optuna.logging.set_verbosity(optuna.logging.ERROR)

    def suggest(self, number: int, history: Sequence[Observation]) -> ParamValues | None:
        """Suggest from what is known of other trials; random for the first ten."""
        seed = generator(self._seed, number).getrandbits(32)
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        study = optuna.create_study(sampler=sampler, direction="maximize" if self._maximize else "minimize")
        seen_trials = [self._frozen(seen) for seen in self._remembered(history)]
        study.add_trials([frozen for frozen in seen_trials if frozen is not None])
        trial = study.ask()
        return build(self._space, lambda path, distribution: _ask(trial, path, distribution))

    def _remembered(self, history: Sequence[Observation]) -> Sequence[Observation]:
        ordered = sorted(history, key=lambda seen: seen.number)
        if len(ordered) <= _REMEMBERED:
            return ordered
        latest = ordered[-_REMEMBERED // 2 :]
        older = [seen for seen in ordered[: -_REMEMBERED // 2] if _valued(seen)]
        best = ranked(self._objective, older)
        return sorted([*best[: _REMEMBERED // 2], *latest], key=lambda seen: seen.number)

    def _frozen(self, seen: Observation) -> FrozenTrial | None:
        """The observation as Optuna sees trials; None when it holds no value."""
        if not _valued(seen) and seen.state.is_final:
            return None
        found = read_back(self._space, seen.params)
        return create_trial(
            state=TrialState.COMPLETE if _valued(seen) else TrialState.RUNNING,
            value=seen.value if _valued(seen) else None,
            params={path: _inner(distribution, value) for path, (distribution, value) in found.items()},
            distributions={path: _outer(distribution) for path, (distribution, _) in found.items()},
        )


def _valued(seen: Observation) -> bool:
    return seen.state.is_final and seen.value is not None and math.isfinite(seen.value)


def _outer(distribution: Distribution) -> BaseDistribution:
    """The distribution under Optuna: a normal one becomes its share in (0, 1)."""
    if isinstance(distribution, Choice):
        return CategoricalDistribution(tuple(range(len(distribution.options))))
    if isinstance(distribution, RandInt):
        return IntDistribution(distribution.low, distribution.high - 1)
    if isinstance(distribution, Normal):
        return FloatDistribution(_EDGE, 1 - _EDGE)
    return FloatDistribution(distribution.low, distribution.high, log=distribution.log)


def _inner(distribution: Distribution, value: Coordinate) -> Coordinate:
    if isinstance(distribution, Normal):
        return min(max(to_unit(distribution, value), _EDGE), 1 - _EDGE)
    return float(value) if isinstance(distribution, Uniform) else int(value)


def _ask(trial: optuna.Trial, path: str, distribution: Distribution) -> Coordinate:
    if isinstance(distribution, Choice):
        return int(trial.suggest_categorical(path, range(len(distribution.options))))
    if isinstance(distribution, RandInt):
        return trial.suggest_int(path, distribution.low, distribution.high - 1)
    if isinstance(distribution, Normal):
        return from_unit(distribution, trial.suggest_float(path, _EDGE, 1 - _EDGE))
    value = trial.suggest_float(path, distribution.low, distribution.high, log=distribution.log)
    return min(max(round_to(value, distribution.q), distribution.low), distribution.high)
