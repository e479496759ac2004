"""Search algorithms and early stopping, by name. Optuna is loaded only where it is used.

A package adds a search algorithm by an entry point of the group `jupyter_autotrain.tuners`: its name is what `tuner:`
names, and it points to a callable that takes an `ExperimentSpec` and gives a `Tuner`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias

from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.core.tuner import EarlyStop, EarlyStopOptions, Tuner
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.tuners import enumeration, samplers, stopping
from jupyter_autotrain.tuners.population import PopulationTuner
from jupyter_autotrain.tuners.stopping import CurveStop

__all__ = ["check", "create", "create_early_stop", "names", "prepared"]

GROUP = "jupyter_autotrain.tuners"
_ALWAYS_THERE = ("tpe", "random", "evolution", "grid", "batch")
_LISTS: Mapping[str, type[Tuner]] = {"grid": enumeration.GridTuner, "batch": enumeration.BatchTuner}
_POPULATION = "pbt"
_Comparing: TypeAlias = stopping.MedianStop | stopping.Asha | stopping.Hyperband | CurveStop
_RULES: Mapping[str, Callable[[Objective, int], _Comparing]] = {
    "median": stopping.MedianStop,
    "asha": stopping.Asha,
    "hyperband": stopping.Hyperband,
    "curve": CurveStop,
}


def names() -> list[str]:
    """Return the search algorithms that are built in."""
    return [*samplers.SAMPLERS, *_LISTS, _POPULATION]


def plugins() -> dict[str, EntryPoint]:
    """Return the search algorithms of other packages, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def prepared(spec: ExperimentSpec) -> ExperimentSpec:
    """Return an experiment that can be searched here, with the trials of the study that its tuner names.

    Raises:
        AutotrainError: As `check`, or the study cannot be gone on from.
    """
    if "study" in spec.tuner_options:
        spec = import_module("jupyter_autotrain.tuners.earlier_study").with_earlier_trials(spec)
    check(spec)
    return spec


def check(spec: ExperimentSpec) -> None:
    """Check that an experiment can be searched here, loading Optuna only for what may be missing or misspelt.

    Raises:
        AutotrainError: As `create` and `create_early_stop`.
    """
    if spec.search and (spec.tuner not in _ALWAYS_THERE or spec.tuner_options):
        create(spec)
    if ":" in spec.early_stop:
        create_early_stop(spec)


def create(spec: ExperimentSpec) -> Tuner:
    """Return the search algorithm of an experiment.

    Raises:
        AutotrainError: When there is none of that name, a package that it needs is missing, or an option is wrong.
    """
    name = spec.tuner
    if name in _LISTS:
        make = _LISTS[name]
        return make(spec)  # type: ignore[call-arg]  # a protocol does not declare constructors
    if name == _POPULATION:
        return PopulationTuner(spec)
    if name in samplers.SAMPLERS or name.partition(":")[0] in {samplers.OPTUNA, samplers.HUB}:
        options = {key: value for key, value in spec.tuner_options.items() if key != "earlier"}
        sampling = samplers.read_sampling(name, options)
        tuner: Tuner = import_module("jupyter_autotrain.tuners.optuna_tuner").OptunaTuner(spec, sampling)
        return tuner
    return _of_plugin(spec)


def _of_plugin(spec: ExperimentSpec) -> Tuner:
    found = plugins()
    point = found.get(spec.tuner)
    if point is None:
        known = [*names(), *found]
        near = closest_match(spec.tuner, known)
        expected = f"Did you mean {near!r}?" if near else f"There are {', '.join(known)}, and {{optuna: CLASS}}."
        raise AutotrainError(f"No tuner is called {spec.tuner!r}.", expected, "Choose one.")
    try:
        tuner: Tuner = point.load()(spec)
    except Exception as error:
        raise AutotrainError(
            f"The tuner {spec.tuner!r} of {point.value} cannot be made: {type(error).__name__}: {error}",
            "It was expected to take an ExperimentSpec and give a Tuner.",
            "Report it to its author, or choose another `tuner:`.",
        ) from error
    return tuner


def create_early_stop(spec: ExperimentSpec) -> EarlyStop | None:
    """Return the early-stopping rule of an experiment; None when it has none, or nothing to compare trials by.

    Raises:
        AutotrainError: When there is none of that name.
    """
    name = spec.early_stop
    objective = spec.objective
    options = spec.early_stop_options
    if name == "none" or objective is None:
        return None
    if name == "threshold":
        return stopping.Threshold(options.warmup_steps, options.lower, options.upper)
    if name == "patience":
        return stopping.Patience(objective, options.warmup_steps, options.patience, options.min_delta)
    if name.startswith(f"{samplers.OPTUNA}:"):
        pruner = samplers.read_pruner(name.partition(":")[2], options.options)
        rule: EarlyStop = import_module("jupyter_autotrain.tuners.pruners").OptunaPruner(
            pruner, objective, options.warmup_steps
        )
        return rule
    return _comparing_rule(name, objective, options)


def _comparing_rule(name: str, objective: Objective, options: EarlyStopOptions) -> EarlyStop:
    make = _RULES.get(name)
    if make is None:
        raise AutotrainError(
            f"No early-stopping rule is called {name!r}.",
            f"There are none, {', '.join(_RULES)}, threshold, patience, and optuna:CLASS.",
            "Choose one.",
        )
    rule = make(objective, options.warmup_steps)
    return rule if options.min_trials is None else replace(rule, min_trials=options.min_trials)
