"""Verbs that show experiments and give results: `ls`, `status`, `show`, `attach`, `best`, `compare`, `load`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Final

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.experiment_files import trial_or_best
from jupyter_autotrain.client.tracking.exporter import TrackedRun, exporter
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import duration, number, parameter, parameters
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.control import listed, show_warm, warm_json
from jupyter_autotrain.views.json_objects import experiment_json, strict, trial_json
from jupyter_autotrain.views.summary import parameter_names, value_text

_MLFLOW: Final = "mlflow:"
_BAD: Final = (TrialState.FAILED, TrialState.LOST)


def write_json(command: CommandContext, value: JsonValue) -> None:
    """Print a value as strict JSON; infinities and NaN become strings, which every reader takes."""
    command.write(json.dumps(strict(value), indent=2, allow_nan=False) + "\n")


def ls(command: CommandContext, arguments: argparse.Namespace) -> None:
    """List experiments, newest first, and print how many more there are; with `--warm` the warm processes."""
    if arguments.warm and arguments.json:
        write_json(command, list(map(warm_json, listed(command))))
        return
    if arguments.warm:
        show_warm(command)
        return
    found = [(experiment, record) for experiment, record in command.listed() if _matches(record, arguments)]
    shown = found[: arguments.number]
    if arguments.json:
        write_json(command, [experiment_json(*pair) for pair in shown])
        return
    if not found:
        command.write(_no_match(command))
        return
    heads = ("name", "state", "trials", "best", "started", "took", "backend")
    left = len(found) - len(shown)
    more = f"... and {left} more (all of them: %autotrain ls -n {len(found)})" if left else ""
    command.present(Table(heads, [_row(command, *pair) for pair in shown], more=more))


def _matches(record: ExperimentRecord, arguments: argparse.Namespace) -> bool:
    named = not arguments.pattern or any(fnmatch(record.label, f"{pattern}*") for pattern in arguments.pattern)
    in_state = not arguments.state or record.state.lower() in arguments.state
    backends = [choice.profile.name for choice in record.spec.backends]
    return named and in_state and (arguments.backend is None or arguments.backend in backends)


def _no_match(command: CommandContext) -> str:
    if command.listed():
        return "No experiment matches. All of them: %autotrain ls\n"
    return "No experiments yet. Put %%autotrain on the first line of a cell and run it.\n"


def _row(command: CommandContext, experiment: Experiment, record: ExperimentRecord) -> tuple[str, ...]:
    bad = [f"{record.counts[state]} {state.lower()}" for state in _BAD if record.counts.get(state)]
    failed = f" ({', '.join(bad)})" if bad else ""
    now_s = record.now_s(command.now(), BootTime.now())
    objective = record.spec.objective
    best = experiment.best if objective else None
    return (
        record.label,
        str(record.state),
        f"{record.ended}/{record.spec.trials}{failed}",
        f"{objective.label} {value_text(best)}" if objective and best else "-",
        f"{duration(max(0.0, now_s - record.created_s))} ago",
        duration(record.took_s(now_s)),
        record.spec.backend_names,
    )


def show(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Show one experiment again, from the store."""
    experiment = command.find(arguments.experiment)
    if not arguments.json:
        command.show(experiment)
        return
    trials: list[JsonValue] = [*map(trial_json, experiment.trials)]
    write_json(command, {**experiment_json(experiment, experiment.record), "trials": trials})


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
    """Put experiments side by side: objective, best value, its parameters; a run of a server is `mlflow:RUN`."""
    named = [reference for reference in arguments.experiment if not reference.startswith(_MLFLOW)]
    found = [*map(command.find, named)]
    runs = [reference.removeprefix(_MLFLOW) for reference in arguments.experiment if reference.startswith(_MLFLOW)]
    beside = {run: _read(run) for run in runs}
    if arguments.json:
        rows_json: list[JsonValue] = [experiment_json(experiment, experiment.record) for experiment in found]
        write_json(command, [*rows_json, *(_run_json(run, tracked) for run, tracked in beside.items())])
        return
    bests = [experiment.best for experiment in found]
    names = parameter_names(filter(None, bests))
    rows = [_compared(experiment, trial, names) for experiment, trial in zip(found, bests, strict=True)]
    rows += [_compared_run(tracked, found, names) for tracked in beside.values()]
    command.present(Table(["name", "state", "trials", "objective", "best", *names], rows))


def _compared(experiment: Experiment, best: TrialRecord | None, names: Sequence[str]) -> list[str]:
    """Return an experiment as a row: its objective, its best value and the parameters of that."""
    objective = experiment.record.spec.objective
    aim = f"{objective.direction} {objective.label}" if objective else "-"
    row = [experiment.name, str(experiment.state), str(len(experiment.trials)), aim]
    if best is None:
        return [*row, "-", *["-"] * len(names)]
    return [*row, value_text(best), *(parameter(best.params.get(name, "-")) for name in names)]


def _read(run: str) -> TrackedRun:
    """Read a run of MLflow."""
    try:
        return exporter("mlflow").read(run)
    except AutotrainError:
        raise
    except Exception as error:  # whatever MLflow raises
        text = f"compare: MLflow does not give the run {run!r}: {error}"
        raise AutotrainError(text, "A run of the server at MLFLOW_TRACKING_URI.", "Look up its id there.") from error


def _run_json(run: str, tracked: TrackedRun) -> JsonValue:
    named = {"id": f"mlflow:{run}", "name": f"mlflow:{tracked.name}", "state": tracked.state}
    return {**named, "params": dict(tracked.params), "metrics": dict(tracked.metrics)}


def _compared_run(tracked: TrackedRun, beside: Sequence[Experiment], names: Sequence[str]) -> list[str]:
    """Return a run of MLflow as a row beside experiments: the last value of their objective's metric."""
    objectives = [one.record.spec.objective for one in beside if one.record.spec.objective]
    metric = objectives[0].metric if objectives else ""
    value = tracked.metrics.get(metric)
    row = [f"mlflow:{tracked.name}", tracked.state, "1", metric or "-", "-" if value is None else number(value)]
    return [*row, *(tracked.params.get(name, "-") for name in names)]


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
