"""Verbs that follow or control an experiment: `wait`, `stop`, `retry`."""

from __future__ import annotations

import argparse
import time

from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.text_format import count, duration
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.warm import stop_warm
from jupyter_autotrain.views.summary import headline, trial_table, warning_lines

_PROGRESS_S = 10.0


class WaitInterrupted(KeyboardInterrupt):
    """An interrupt of a wait, with what to do next; a notebook shows this text alone."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def wait(command: CommandContext, arguments: argparse.Namespace) -> bool:
    """Wait until an experiment ends, and give whether it has succeeded; an interrupt detaches, it continues."""
    return follow(command, command.find(arguments.experiment), timeout_s=arguments.timeout_s)


def follow(command: CommandContext, experiment: Experiment, *, timeout_s: float | None = None) -> bool:
    """Print now and then how many trials have ended, until the experiment ends; then its summary.

    Returns:
        Whether it has ended, and succeeded.

    Raises:
        WaitInterrupted: The user has interrupted it.
    """
    progress = _Progress(command)
    began_s = time.monotonic()
    try:
        while not experiment.wait(timeout_s=0.5):
            progress.tell(experiment)
            if timeout_s is not None and time.monotonic() - began_s > timeout_s:
                command.write(f"{experiment.name} is still {experiment.state} after {duration(timeout_s)}.\n")
                return False
    except KeyboardInterrupt:
        raise WaitInterrupted(
            f"Detached: {experiment.name} continues in the background.\n"
            f"Watch it again: %autotrain show {experiment.name}   End it: %autotrain stop {experiment.name}"
        ) from None
    command.write(f"{headline(experiment)}\n")
    command.present(trial_table(experiment))
    for line in warning_lines(experiment):
        command.write(f"{line}\n")
    return experiment.state is ExperimentState.SUCCEEDED


class _Progress:
    """Says now and then how far an experiment is; what becomes of each trial, the table at the end says."""

    def __init__(self, command: CommandContext) -> None:
        self._command = command
        self._next_s = time.monotonic() + _PROGRESS_S
        self._told = ""

    def tell(self, experiment: Experiment) -> None:
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _PROGRESS_S
        record = experiment.record
        failed = record.counts.get(TrialState.FAILED, 0)
        total = max(record.spec.trials, sum(record.counts.values()))
        text = f"{record.ended} of {count(total, 'trial')} ended" + (f", {failed} failed" if failed else "")
        if text != self._told:
            self._told = text
            self._command.write(f"{text}\n")


def stop(command: CommandContext, arguments: argparse.Namespace) -> None:
    """End an experiment, or some of its trials, and print the receipt; with `--warm` the warm processes."""
    if arguments.warm:
        stop_warm(command)
        return
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
