"""Verbs that give results: `best`, `compare`, `load`."""

from __future__ import annotations

import argparse

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.trial_selection import trial_or_best
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import number, parameter, parameters
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.json_output import write_json
from jupyter_autotrain.views.best import value_text
from jupyter_autotrain.views.json_objects import experiment_json, trial_json


def best(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Print the best trial with its parameters."""
    experiment = command.find(arguments.experiment)
    objective = experiment.record.spec.objective
    trial = experiment.best
    if objective is None:
        raise AutotrainError(
            f"{experiment.name} has no objective, so no trial is best.",
            "Expected a header line such as: objective: maximize val_acc",
            f"See all trials: %autotrain show {experiment.name}",
        )
    if arguments.json:
        write_json(command, None if trial is None else trial_json(trial))
        return
    if trial is None:
        command.write(f"{experiment.name}: {_no_best(experiment, objective.metric)}.\n")
        return
    value = f"trial {trial.number} ({trial.state}), {objective.label} = {number(trial.value)}"
    params = f" with {parameters(trial.params)}" if trial.params else ""
    command.write(f"{experiment.name}: {value}{params}\n")


def _no_best(experiment: Experiment, metric: str) -> str:
    if metric not in experiment.store.metric_names(experiment.id):
        return f"no trial has reported {metric} yet"
    return f"{metric} was reported, but no trial has a finite value of it"


def compare(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Put experiments side by side: objective, best value, its parameters."""
    found = [command.find(reference) for reference in arguments.experiment]
    if arguments.json:
        write_json(command, [experiment_json(experiment, experiment.record) for experiment in found])
        return
    bests = [experiment.best for experiment in found]
    names = list(dict.fromkeys(name for trial in bests if trial for name in trial.params))
    rows = []
    for experiment, trial in zip(found, bests, strict=True):
        objective = experiment.record.spec.objective
        values = [parameter(trial.params.get(name, "-")) if trial else "-" for name in names]
        rows.append(
            [
                experiment.name,
                str(experiment.state),
                str(len(experiment.trials)),
                f"{objective.direction} {objective.label}" if objective else "-",
                value_text(trial) if trial else "-",
                *values,
            ]
        )
    command.present(Table(["name", "state", "trials", "objective", "best", *names], rows))


def load(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Load an object that the trial returned, and keep it under its name."""
    reference = arguments.experiment
    variable = arguments.variable
    if variable is None:
        reference, variable = "_", reference
    experiment = command.find(reference)
    if variable == "_":
        names = ", ".join(experiment.record.spec.returns) or "nothing"
        raise AutotrainError(
            "load: no name was given.", f"{experiment.name} returns: {names}.", "Run: %autotrain load [NAME] VARIABLE"
        )
    trial = trial_or_best(experiment.store, experiment.record, arguments.trial)
    command.keep(variable, experiment.load(variable, trial=trial.number))
    command.write(f"{variable} = {experiment.name}, trial {trial.number} (a pickle: loading it runs code in it)\n")
