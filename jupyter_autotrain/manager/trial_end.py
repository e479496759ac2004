"""The end of a trial: its final state, another attempt, or one failure more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, cast

from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.backend import JobRef, JobStatus
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.manager.attempts import MOVES, Attempt
from jupyter_autotrain.manager.experiment_run import ExperimentRun

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
    if ending is not None and status.state is not TrialState.SUCCEEDED:
        return ending
    if status.state is TrialState.SUCCEEDED and objective and names is not None:
        reported = f"it reported {', '.join(names)}" if names else "it reported nothing"
        reason = f"the objective {objective!r} was never reported; {reported}: call report({objective}=...)"
        return FinalState(TrialState.FAILED, reason)
    return FinalState(status.state, status.reason)


def try_again(spec: ExperimentSpec, trial: TrialRecord, *, has_moved: bool) -> bool:
    """Get True when another attempt is due after this end: `retries` allows it, or the trial moves from a lost place.

    `retries` counts what the cell does, so the one attempt that was lost with its place is not counted. What may still
    run is not tried again: a trial never runs twice.
    """
    is_over = trial.state in RETRIED and not trial.reason.endswith(MAY_RUN)
    return is_over and trial.attempt <= spec.retries + has_moved


_ENDED: Final = {
    TrialState.FAILED: "failed",
    TrialState.LOST: "was lost",
    TrialState.PREEMPTED: "was preempted",
    TrialState.CANCELLED: "was stopped",
}
_ADVICE = (" `%autotrain retry` ", " `retries:` in the header ")  # to do what is done now
_LATE_S = 5.0  # what lies between an end and its record otherwise is much less


def finish(run: ExperimentRun, attempt: Attempt, status: JobStatus, *, may_move: bool = False) -> None:
    """Give a trial its final state, and begin another attempt when one is due.

    Args:
        run: Its experiment.
        attempt: What has ended.
        status: As its backend tells it.
        may_move: Whether another place could take it, where its own is lost.
    """
    number = attempt.trial.number
    objective = attempt.trial.objective
    names = _names_instead(run, attempt, status)
    end = _with_move(run, number, decide(status, attempt.final_state, objective, names), may_move=may_move)
    blocks_others = run.objective_check.check_end(number, objective, end, status, names)
    if blocks_others:  # stored before the end, so that a killed manager leaves neither without the other
        run.store_decision("objective", run.objective_check.reason)
    del run.attempts[number]
    ref = attempt.ref or status.ref
    ran_s = _ran_s(status)
    if ran_s is not None:
        _begin_unseen(run, number, ref, ran_s)
    run.change_state(number, end.state, end.reason, ref=ref, at_s=_ended_before_s(run, number, ran_s))
    if blocks_others:
        run.count_failure()
    else:
        retry_or_count(run, number)


def _with_move(run: ExperimentRun, number: int, end: FinalState, *, may_move: bool) -> FinalState:
    """Return the end of a trial.

    The reason says where it is tried once more elsewhere, and the next manager reads it there.
    """
    moves = end.state is TrialState.LOST and may_move and not run.stopping and not run.history.has_moved(number)
    return replace(end, reason=f"{_without_advice(end.reason).rstrip('.')}; {MOVES}") if moves else end


def _without_advice(reason: str) -> str:
    for advice in _ADVICE:
        reason = reason.partition(advice)[0]
    return reason


def _ran_s(status: JobStatus) -> float | None:
    """Return how long a trial ran by the clock of its machine; None where that is not known, or was set meanwhile."""
    there = (status.detail.get("started_s"), status.detail.get("ended_s"))
    if not all(isinstance(time_s, int | float) for time_s in there):
        return None
    started_s, ended_s = cast("tuple[float, float]", there)
    return ended_s - started_s if started_s <= ended_s else None


def _begin_unseen(run: ExperimentRun, number: int, ref: JobRef, ran_s: float) -> None:
    """Record that a trial ran which began and ended between two looks."""
    trial = run.trials[number]
    begun_s = run.now_s() - ran_s
    if trial.state is TrialState.PREPARING and begun_s >= trial.created_s:
        run.change_state(number, TrialState.RUNNING, ref=ref, at_s=begun_s)


def _ended_before_s(run: ExperimentRun, number: int, ran_s: float | None) -> float | None:
    """When a trial ended whose end was learned late, as after a cut link; None where it has just ended.

    The clock of its machine may be another one, so that only what the trial took by it counts.
    """
    begun_s = run.trials[number].started_s
    if begun_s is None or ran_s is None or begun_s + ran_s >= run.now_s() - _LATE_S:
        return None
    return begun_s + ran_s


def _names_instead(run: ExperimentRun, attempt: Attempt, status: JobStatus) -> list[str] | None:
    """Return the metrics reported in place of the objective; None when it was reported."""
    trial = attempt.trial
    if not trial.objective or status.state is not TrialState.SUCCEEDED or attempt.objective_seen:
        return None
    store = run.context.store
    names = run.context.retry_store(store.metric_names, run.id, trial.number)  # one that resumes may have had all of it
    return None if trial.objective in names else sorted(names)


def retry_or_count(run: ExperimentRun, number: int) -> None:
    """After an end: another attempt when `retries` allows it, else one failure more."""
    trial = run.trials[number]
    spec = run.record.spec
    has_moved = run.history.has_moved(number)
    if not run.stopping and try_again(spec, trial, has_moved=has_moved):
        if run.early_stopping is not None:
            run.early_stopping.forget(number)
        again = f"attempt {trial.attempt + 1} of {spec.retries + has_moved + 1}"
        run.change_state(number, TrialState.WAITING, f"{again}; {earlier(trial)}")
    elif trial.state is TrialState.FAILED:
        run.count_failure()


def earlier(trial: TrialRecord) -> str:
    """Return how an attempt has ended after which there is another one."""
    ended = _ENDED.get(trial.state, trial.state.lower())
    reason = _without_advice(trial.reason.removeprefix("Lost: ").removesuffix(f"; {MOVES}"))
    return f"attempt {trial.attempt} {ended}: {reason}".removesuffix(": ")


def mark_lost(run: ExperimentRun, reason: str) -> None:
    """End all trials, also those that a backend has: their state cannot be polled any more."""
    run.fail_all_waiting(reason)
    for attempt in list(run.attempts.values()):
        finish_lost(run, attempt, reason)


def finish_lost(run: ExperimentRun, attempt: Attempt, reason: str) -> None:
    """End an attempt whose state cannot be polled any more; it may go on."""
    ref = attempt.ref or JobRef(attempt.placement.backend, attempt.trial.job_id)
    finish(run, attempt, JobStatus(ref, TrialState.LOST, f"{reason}; {MAY_RUN}"))
