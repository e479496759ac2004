"""Verbs that show experiments: `ls`, `status`, `show`, `attach`."""

from __future__ import annotations

import argparse
from collections import Counter

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.core.wording import cut, duration, number, parameter
from jupyter_autotrain.verbs.desk import Desk
from jupyter_autotrain.verbs.text import table


def ls(desk: Desk, arguments: argparse.Namespace) -> None:
    """List experiments, newest first."""
    found = desk.all()[: arguments.number]
    if not found:
        desk.write("No experiments yet. Put %%autotrain on the first line of a cell and run it.\n")
        return
    heads = ("name", "state", "trials", "best", "started", "took", "backend")
    desk.write(table(heads, [_row(desk, experiment) for experiment in found]) + "\n")


def _row(desk: Desk, experiment: Experiment) -> tuple[str, ...]:
    record = experiment.record
    states = Counter(trial.state for trial in experiment.trials)
    ended = sum(many for state, many in states.items() if state.is_final)
    failed = f" ({states[TrialState.FAILED]} failed)" if states[TrialState.FAILED] else ""
    ended_s = record.ended_s if record.ended_s is not None else desk.now()
    best = experiment.best
    objective = record.spec.objective
    return (
        experiment.name,
        str(record.state),
        f"{ended}/{record.spec.trials}{failed}",
        f"{objective.metric}={number(best.value)}" if objective and best else "-",
        f"{duration(max(0.0, desk.now() - record.created_s))} ago",
        duration(max(0.0, ended_s - record.created_s)),
        record.spec.backend,
    )


def show(desk: Desk, arguments: argparse.Namespace) -> None:
    """Show one experiment again, from the store."""
    desk.show(desk.find(arguments.experiment))


def card(experiment: Experiment) -> str:
    """One experiment as text: name, state, best trial, all trials."""
    record = experiment.record
    best = experiment.best
    objective = record.spec.objective
    ranked = f"; best {objective.metric} {number(best.value)} in trial {best.number}" if objective and best else ""
    return f"{headline(experiment)}{ranked}\n{trials_table(experiment)}"


def headline(experiment: Experiment) -> str:
    """Name, state, and why it ended before its trials were used up."""
    record = experiment.record
    return f"{experiment.name}: {record.state}" + (f", {record.reason}" if record.reason else "")


def trials_table(experiment: Experiment, *, most: int = 20) -> str:
    """The trials of an experiment as text: number, state, parameters, objective, time, reason."""
    objective = experiment.record.spec.objective
    trials = experiment.trials
    names = list(dict.fromkeys(name for trial in trials for name in trial.params))
    heads = ["trial", "state", *names, *([objective.metric] if objective else []), "took", "reason"]
    rows = []
    for trial in trials[:most]:
        took = trial.ended_s - trial.started_s if trial.ended_s and trial.started_s else None
        values = [cut(parameter(trial.params.get(name, "")), 40) for name in names]
        reason = cut(trial.reason.splitlines()[0], 80) if trial.reason else ""
        ranked = [number(trial.value)] if objective else []
        rows.append(
            [
                str(trial.number),
                str(trial.state),
                *values,
                *ranked,
                duration(max(0.0, took)) if took is not None else "-",
                reason,
            ]
        )
    more = f"\n... and {len(trials) - most} more trials" if len(trials) > most else ""
    return table(heads, rows) + more
