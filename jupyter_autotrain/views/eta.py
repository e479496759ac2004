"""The estimate of the time that an experiment still takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.store import TrialTimes

_LEAST_MEAN_S: Final = 1e-3
_MOST_DONE: Final = 0.95  # of a running trial, however old it is


def eta_s(record: ExperimentRecord, trials: Sequence[TrialRecord | TrialTimes], now_s: float) -> float | None:
    """Seconds until the end, if trials continue as they did; None before the first has ended, and at the end.

    A running trial counts with its elapsed share, measured by the mean duration of those that ended well. After a
    retry of an ended experiment only what has happened since counts.
    """
    missing = max(record.spec.trials - len(trials), 0)
    trials = [trial for trial in trials if trial.ended_s is None or trial.ended_s >= record.begun_s]
    spans = [
        trial.ended_s - trial.started_s
        for trial in trials
        if trial.started_s is not None and trial.ended_s is not None and trial.state is not TrialState.FAILED
    ]
    if not spans or record.state.is_final:
        return None
    begun = [trial.started_s for trial in trials if trial.started_s is not None]
    mean_s = max(sum(spans) / len(spans), _LEAST_MEAN_S)
    ages = [now_s - trial.started_s for trial in trials if trial.started_s is not None and not trial.state.is_final]
    running = sum(min(max(age, 0) / mean_s, _MOST_DONE) for age in ages)
    done = sum(trial.state.is_final for trial in trials) + running
    total = missing + len(trials)
    return max(now_s - min(begun), 0.0) * max(total - done, 0.0) / done
