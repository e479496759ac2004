"""Verbs that show experiments: `ls`, `status`, `show`, `attach`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fnmatch import fnmatch

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.core.table import table
from jupyter_autotrain.core.wording import cut, duration, number, parameter
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.json_output import experiment_json, trial_json, write_json
from jupyter_autotrain.verbs.trials import ended_otherwise


def ls(command: CommandContext, arguments: argparse.Namespace) -> None:
    """List experiments, newest first, and say how many more there are."""
    found = [(experiment, record) for experiment, record in command.listed() if _is_wanted(record, arguments)]
    shown = found[: arguments.number]
    if arguments.json:
        write_json(command, [experiment_json(*pair) for pair in shown])
        return
    if not found:
        command.write(_nothing(command))
        return
    heads = ("name", "state", "trials", "best", "started", "took", "backend")
    command.write(table(heads, [_row(command, *pair) for pair in shown]) + "\n")
    if left := len(found) - len(shown):
        command.write(f"... and {left} more (all of them: %autotrain ls -n {len(found)})\n")


def _is_wanted(record: ExperimentRecord, arguments: argparse.Namespace) -> bool:
    named = not arguments.pattern or any(fnmatch(record.label, f"{pattern}*") for pattern in arguments.pattern)
    in_state = not arguments.state or record.state.lower() in arguments.state
    return named and in_state and arguments.backend in (None, record.spec.backend)


def _nothing(command: CommandContext) -> str:
    if command.listed():
        return "No experiment fits. All of them: %autotrain ls\n"
    return "No experiments yet. Put %%autotrain on the first line of a cell and run it.\n"


def _row(command: CommandContext, experiment: Experiment, record: ExperimentRecord) -> tuple[str, ...]:
    ended = sum(many for state, many in record.counts.items() if state.is_final)
    failures = record.counts.get(TrialState.FAILED, 0)
    failed = f" ({failures} failed)" if failures else ""
    now_s = record.now_s(command.now(), BootTime.now())
    objective = record.spec.objective
    best = experiment.best if objective else None
    return (
        record.label,
        str(record.state),
        f"{ended}/{record.spec.trials}{failed}",
        f"{objective.label} {number(best.value)}{ended_otherwise(best)}" if objective and best else "-",
        f"{duration(max(0.0, now_s - record.created_s))} ago",
        duration(record.took_s(now_s)),
        record.spec.backend,
    )


def show(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Show one experiment again, from the store."""
    experiment = command.find(arguments.experiment)
    if not arguments.json:
        command.show(experiment)
        return
    trials: list[JsonValue] = [trial_json(trial) for trial in experiment.trials]
    write_json(command, {**experiment_json(experiment, experiment.record), "trials": trials})


def card(experiment: Experiment) -> str:
    """One experiment as text: name, state, best trial, all trials."""
    record = experiment.record
    best = experiment.best
    objective = record.spec.objective
    told = ""
    if objective and best:
        told = f"; best {objective.label} {number(best.value)} in trial {best.number} ({best.state})"
    warnings = "".join(f"\n{cut(text, 160)}" for text in experiment.warnings(most=5))
    return f"{headline(experiment)}{told}\n{trials_table(experiment)}{warnings}"


def headline(experiment: Experiment) -> str:
    """Name, state, and why it ended before its trials were used up."""
    record = experiment.record
    return f"{experiment.name}: {record.state}" + (f", {record.reason}" if record.reason else "")


def trials_table(experiment: Experiment, *, most: int = 20) -> str:
    """The trials of an experiment as text: number, state, parameters, objective, time, reason.

    Of more than `most` trials the first ones, and the best wherever it is.
    """
    record = experiment.record
    objective = record.spec.objective
    total = sum(record.counts.values())
    trials = experiment.store.trials(experiment.id, limit=most)
    best = experiment.best
    if best is not None and best.number not in {trial.number for trial in trials}:
        trials[-1] = best
    names = list(dict.fromkeys(name for trial in trials for name in trial.params))
    heads = ["trial", "state", *names, *([objective.label] if objective else []), "took", "reason"]
    rows = [_trial_row(trial, names, ranked=objective is not None) for trial in trials]
    left = total - len(trials)
    more = f"\n... and {left} more trials (all of them: %autotrain show {experiment.name} --json)" if left > 0 else ""
    return table(heads, rows) + more


def _trial_row(trial: TrialRecord, names: Sequence[str], *, ranked: bool) -> list[str]:
    took = trial.ended_s - trial.started_s if trial.ended_s and trial.started_s else None
    return [
        str(trial.number),
        str(trial.state),
        *(cut(parameter(trial.params.get(name, "")), 40) for name in names),
        *([number(trial.value)] if ranked else []),
        duration(max(0.0, took)) if took is not None else "-",
        cut(trial.reason.splitlines()[0], 80) if trial.reason else "",
    ]
