"""How a trial ended, and whether it is tried again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.core.backend import JobStatus
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.states import FinalState, TrialState

MAY_RUN = "it may still run there"
RETRIED = frozenset({TrialState.FAILED, TrialState.LOST, TrialState.PREEMPTED})


def decide(status: JobStatus, ending: FinalState | None, objective: str, names: Sequence[str] | None) -> FinalState:
    """Decide the final state.

    Args:
        status: The status that the backend gives; a final state.
        ending: The manager's own decision, if it made one.
        objective: The metric that ranks trials, or "".
        names: None when the objective was reported, else the metrics that were.
    """
    if ending is not None and ending.state is TrialState.EARLY_STOPPED and status.state is not TrialState.FAILED:
        return ending
    if ending is not None and status.state is not TrialState.SUCCEEDED:
        return ending
    if status.state is TrialState.SUCCEEDED and objective and names is not None:
        reported = f"it reported {', '.join(names)}" if names else "it reported nothing"
        reason = f"the objective {objective!r} was never reported; {reported}: call report({objective}=...)"
        return FinalState(TrialState.FAILED, reason)
    return FinalState(status.state, status.reason)


def try_again(spec: ExperimentSpec, trial: TrialRecord, *, has_moved: bool) -> bool:
    """True when another attempt is due after this end: `retries` allows it, or the trial moves from a lost place.

    `retries` counts what the cell does, so the one attempt that was lost with its place is not counted. What may still
    run is not tried again: a trial never runs twice.
    """
    is_over = trial.state in RETRIED and not trial.reason.endswith(MAY_RUN)
    return is_over and trial.attempt <= spec.retries + has_moved
