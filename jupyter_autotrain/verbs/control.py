"""Verbs that change something: `wait`, `stop`, `retry`, `clean`."""

from __future__ import annotations

import argparse
import time

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.wording import count, cut, duration, number
from jupyter_autotrain.verbs.desk import Desk
from jupyter_autotrain.verbs.listing import headline, trials_table


def wait(desk: Desk, arguments: argparse.Namespace) -> None:
    """Wait until an experiment ends; an interrupt detaches, the experiment goes on."""
    follow(desk, desk.find(arguments.experiment), timeout_s=arguments.timeout_s)


def follow(desk: Desk, experiment: Experiment, *, timeout_s: float | None = None) -> None:
    """Stream a bounded summary (a line per ended trial, 40 at most) until the experiment ends."""
    summary = _Summary(desk)
    began_s = time.monotonic()
    try:
        while not experiment.wait(timeout_s=0.5):
            summary.update(experiment)
            if timeout_s is not None and time.monotonic() - began_s > timeout_s:
                desk.write(f"{experiment.name} is still {experiment.state} after {duration(timeout_s)}.\n")
                return
    except KeyboardInterrupt:
        desk.write(
            f"Detached: {experiment.name} goes on in the background.\n"
            f"Watch it again: %autotrain show {experiment.name}   End it: %autotrain stop {experiment.name}\n"
        )
        return
    summary.update(experiment)
    warnings = "".join(f"{cut(text, 160)}\n" for text in experiment.warnings(most=5))
    desk.write(f"{headline(experiment)}\n{trials_table(experiment)}\n{warnings}")


class _Summary:
    """Prints each ended trial once, and stops printing before it floods the notebook."""

    MOST_LINES = 40

    def __init__(self, desk: Desk) -> None:
        self.desk, self.seen = desk, set[int]()

    def update(self, experiment: Experiment) -> None:
        objective = experiment.record.spec.objective
        for trial in experiment.trials:
            if not trial.state.is_final or trial.number in self.seen:
                continue
            self.seen.add(trial.number)
            if len(self.seen) <= self.MOST_LINES:
                value = f"  {objective.label} {number(trial.value)}" if objective and trial.value is not None else ""
                reason = f"  {cut(trial.reason.splitlines()[0], 160)}" if trial.reason else ""
                self.desk.write(f"trial {trial.number}: {trial.state}{value}{reason}\n")
            elif len(self.seen) == self.MOST_LINES + 1:
                self.desk.write("... (the table below has all trials)\n")


def stop(desk: Desk, arguments: argparse.Namespace) -> None:
    """End an experiment, or some of its trials, and say what was ended."""
    experiment = desk.find(arguments.experiment)
    desk.write(f"{experiment.stop(arguments.trial)}\n")


def retry(desk: Desk, arguments: argparse.Namespace) -> None:
    """Run the failed trials of an experiment again."""
    experiment = desk.find(arguments.experiment)
    again = experiment.retry()
    if not again:
        desk.write(f"{experiment.name} is {experiment.state}: it has no failed or cancelled trial to run again.\n")
        return
    runs = f"{count(len(again), 'trial')} {'runs' if len(again) == 1 else 'run'} again"
    desk.write(f"{experiment.name}: {runs}. Watch: %autotrain show {experiment.name}\n")
