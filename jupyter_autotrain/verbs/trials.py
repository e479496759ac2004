"""Which trial of an experiment a verb means."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import AutotrainError


def chosen_trial(experiment: Experiment, number: int | None) -> TrialRecord:
    """The trial of that number; without one the best, else the newest that has begun.

    Raises:
        AutotrainError: There is no such trial.
    """
    trials = _trials(experiment)
    return _numbered(experiment, trials, number) if number is not None else experiment.best or _newest(trials)


def printing_trial(experiment: Experiment, number: int | None) -> TrialRecord:
    """The trial of that number; without one the newest that has begun, since it is the one that prints.

    Raises:
        AutotrainError: There is no such trial.
    """
    trials = _trials(experiment)
    if number is not None:
        return _numbered(experiment, trials, number)
    return _newest(trials)


def _newest(trials: Sequence[TrialRecord]) -> TrialRecord:
    begun = [trial for trial in trials if trial.state is not TrialState.WAITING]
    return (begun or trials)[-1]


def _trials(experiment: Experiment) -> Sequence[TrialRecord]:
    trials = experiment.trials
    if not trials:
        raise AutotrainError(
            f"{experiment.name} has no trial yet.",
            "A trial that has begun.",
            f"Ask: %autotrain why {experiment.name}",
        )
    return trials


def _numbered(experiment: Experiment, trials: Sequence[TrialRecord], number: int) -> TrialRecord:
    found = next((trial for trial in trials if trial.number == number), None)
    if found is None:
        raise AutotrainError(
            f"{experiment.name} has no trial {number}.",
            f"Expected a number from 1 to {len(trials)}.",
            f"See: %autotrain show {experiment.name}",
        )
    return found
