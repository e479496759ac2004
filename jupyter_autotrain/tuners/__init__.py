"""Search algorithms and early stopping, by name. Optuna is loaded only for `tpe`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.tuner import EarlyStop, Tuner
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.tuners import simple, stopping

__all__ = ["create", "create_early_stop", "names"]

_LIGHT: Mapping[str, type[Tuner]] = {
    "random": simple.RandomTuner,
    "evolution": simple.EvolutionTuner,
    "grid": simple.GridTuner,
    "batch": simple.BatchTuner,
}
_RULES: Mapping[str, type[stopping.MedianStop] | type[stopping.Asha]] = {
    "median": stopping.MedianStop,
    "asha": stopping.Asha,
}


def names() -> list[str]:
    """The search algorithms there are."""
    return ["tpe", *_LIGHT]


def create(spec: ExperimentSpec) -> Tuner:
    """The search algorithm of an experiment.

    Raises:
        AutotrainError: When there is none of that name.
    """
    if spec.tuner == "tpe":
        tuner: Tuner = import_module("jupyter_autotrain.tuners.tpe").TpeTuner(spec)
        return tuner
    if spec.tuner not in _LIGHT:
        raise AutotrainError(f"No tuner is called {spec.tuner!r}.", f"There are {', '.join(names())}.", "Choose one.")
    make = _LIGHT[spec.tuner]
    return make(spec)  # type: ignore[call-arg]  # a protocol does not declare constructors


def create_early_stop(spec: ExperimentSpec) -> EarlyStop | None:
    """The early-stopping rule of an experiment; None when it has none, or nothing to compare trials by.

    Raises:
        AutotrainError: When there is none of that name.
    """
    if spec.early_stop == "none" or spec.objective is None:
        return None
    make = _RULES.get(spec.early_stop)
    if make is not None:
        options = spec.early_stop_options
        rule = make(spec.objective, options.warmup_steps)
        return rule if options.min_trials is None else replace(rule, min_trials=options.min_trials)
    raise AutotrainError(
        f"No early-stopping rule is called {spec.early_stop!r}.", "There are none, median, asha.", "Choose one."
    )
