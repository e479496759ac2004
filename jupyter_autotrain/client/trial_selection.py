"""Which trial is meant where none, or only a number, is given."""

from __future__ import annotations

from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store


def trial_or_best(store: Store, record: ExperimentRecord, number: int | None) -> TrialRecord:
    """The trial of that number; without one the best, else the newest that has begun.

    Raises:
        AutotrainError: There is no such trial.
    """
    if number is not None:
        return store.trial(record.id, number)
    return store.best_trial(record.id, record.spec.objective) or _newest(store, record)


def trial_or_newest(store: Store, record: ExperimentRecord, number: int | None) -> TrialRecord:
    """The trial of that number; without one the newest that has begun.

    Raises:
        AutotrainError: There is no such trial.
    """
    return _newest(store, record) if number is None else store.trial(record.id, number)


def _newest(store: Store, record: ExperimentRecord) -> TrialRecord:
    trials = store.trials(record.id)
    if not trials:
        raise AutotrainError(
            f"{record.label} has no trial yet.",
            "A trial that has begun.",
            f"Wait a moment, or ask why: %autotrain why {record.label}",
        )
    begun = [trial for trial in trials if trial.state is not TrialState.WAITING]
    return (begun or trials)[-1]
