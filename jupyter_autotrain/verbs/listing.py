"""Verbs that show experiments: `ls`, `status`, `show`, `attach`."""

from __future__ import annotations

import argparse
from fnmatch import fnmatch

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import duration
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.json_output import write_json
from jupyter_autotrain.views.best import value_text
from jupyter_autotrain.views.json_objects import experiment_json, trial_json


def ls(command: CommandContext, arguments: argparse.Namespace) -> None:
    """List experiments, newest first, and print how many more there are."""
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
    ended = sum(many for state, many in record.counts.items() if state.is_final)
    bad = {state: record.counts.get(state, 0) for state in (TrialState.FAILED, TrialState.LOST)}
    told = ", ".join(f"{many} {state.lower()}" for state, many in bad.items() if many)
    failed = f" ({told})" if told else ""
    now_s = record.now_s(command.now(), BootTime.now())
    objective = record.spec.objective
    best = experiment.best if objective else None
    return (
        record.label,
        str(record.state),
        f"{ended}/{record.spec.trials}{failed}",
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
    trials: list[JsonValue] = [trial_json(trial) for trial in experiment.trials]
    write_json(command, {**experiment_json(experiment, experiment.record), "trials": trials})
