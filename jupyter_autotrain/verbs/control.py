"""Verbs that follow or control an experiment: `wait`, `stop`, `retry`."""

from __future__ import annotations

import argparse
import time

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.states import ExperimentState
from jupyter_autotrain.core.text_format import count, cut, duration, number
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.views.summary import headline, trial_table, warning_lines


class WaitInterrupted(KeyboardInterrupt):
    """An interrupt of a wait, with what to do next; a notebook shows this text alone."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def wait(command: CommandContext, arguments: argparse.Namespace) -> bool:
    """Wait until an experiment ends, and give whether it has succeeded; an interrupt detaches, it continues."""
    return follow(command, command.find(arguments.experiment), timeout_s=arguments.timeout_s)


def follow(command: CommandContext, experiment: Experiment, *, timeout_s: float | None = None) -> bool:
    """Print a line per ended trial, 40 at most, until the experiment ends; then its summary.

    Returns:
        Whether it has ended, and succeeded.

    Raises:
        WaitInterrupted: The user has interrupted it.
    """
    printer = _TrialPrinter(command)
    began_s = time.monotonic()
    try:
        while not experiment.wait(timeout_s=0.5):
            printer.update(experiment)
            if timeout_s is not None and time.monotonic() - began_s > timeout_s:
                command.write(f"{experiment.name} is still {experiment.state} after {duration(timeout_s)}.\n")
                return False
    except KeyboardInterrupt:
        raise WaitInterrupted(
            f"Detached: {experiment.name} continues in the background.\n"
            f"Watch it again: %autotrain show {experiment.name}   End it: %autotrain stop {experiment.name}"
        ) from None
    printer.update(experiment)
    command.write(f"{headline(experiment)}\n")
    command.present(trial_table(experiment))
    for line in warning_lines(experiment):
        command.write(f"{line}\n")
    return experiment.state is ExperimentState.SUCCEEDED


class _TrialPrinter:
    """Prints each ended trial once, up to a limit."""

    MAX_LINES = 40

    def __init__(self, command: CommandContext) -> None:
        self.command = command
        self.printed = set[int]()

    def update(self, experiment: Experiment) -> None:
        objective = experiment.record.spec.objective
        for trial in experiment.trials:
            if not trial.state.is_final or trial.number in self.printed:
                continue
            self.printed.add(trial.number)
            if len(self.printed) <= self.MAX_LINES:
                value = f"  {objective.label} {number(trial.value)}" if objective and trial.value is not None else ""
                reason = f"  {cut(trial.reason.splitlines()[0], 160)}" if trial.reason else ""
                self.command.write(f"trial {trial.number}: {trial.state}{value}{reason}\n")
            elif len(self.printed) == self.MAX_LINES + 1:
                self.command.write("... (the table below has all trials)\n")


def stop(command: CommandContext, arguments: argparse.Namespace) -> None:
    """End an experiment, or some of its trials, and print the receipt."""
    experiment = command.find(arguments.experiment)
    command.write(f"{experiment.stop(arguments.trial)}\n")


def retry(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Run the failed trials of an experiment again."""
    experiment = command.find(arguments.experiment)
    again = experiment.retry()
    if not again:
        command.write(f"{experiment.name} is {experiment.state}: it has no failed or cancelled trial to run again.\n")
        return
    runs = f"{count(len(again), 'trial')} {'runs' if len(again) == 1 else 'run'} again"
    command.write(f"{experiment.name}: {runs}. Watch: %autotrain show {experiment.name}\n")
