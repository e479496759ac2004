"""The state of a trial by what has come of it in the log of its job, and by how a cancel of it went."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import termination_causes
from jupyter_autotrain.agent.trial.cancel_receipt import CancelReceipt, receipt_of
from jupyter_autotrain.agent.trial.status import Status
from jupyter_autotrain.backends import agent_answers
from jupyter_autotrain.core.backend import JobRef, JobStatus

NOBODY: Sequence[float | str] = (0, 0.0, "")  # the supervisor of a trial that has none
CANCELLED = "Cancelled on request."
_COLLECTING = "is ending: what it has left is collected"
_LAST_LINES = 3


def final(ref: JobRef, status: Status) -> JobStatus:
    """Return how a trial has ended."""
    return JobStatus(ref, TrialState(str(status["state"])), statuses.reason(status), cast("JsonObject", status))


def going_on(ref: JobRef, own: Sequence[Status | None]) -> JobStatus:
    """Return the state by the first node of a trial that has not ended; it runs when all nodes do."""
    first = own[0] or {}
    states = [TrialState(str(status["state"])) if status else TrialState.PREPARING for status in own]
    if TrialState.PREPARING in states:
        waiting = next((statuses.reason(status) for status in own if status and status["reason"]), "")
        return JobStatus(ref, TrialState.PREPARING, waiting, cast("JsonObject", first))
    is_ending = all(state.is_final for state in states)
    detail: JsonObject = cast("JsonObject", {**first, "state": str(TrialState.RUNNING)})
    return JobStatus(ref, TrialState.RUNNING, _COLLECTING if is_ending else "", detail)


def ended(ref: JobRef, own: Sequence[Status | None], lost: str = "") -> Status | None:
    """Return how a trial has ended by the statuses of its nodes; None where they do not say it.

    Args:
        ref: The job.
        own: What each node has told last.
        lost: Why those that have told no end will tell none; "" while they may.
    """
    nodes = [_of_node(ref, number, status) for number, status in enumerate(own)]
    silent = [number for number, one in enumerate(nodes) if not one.state.is_final]
    if len(silent) == len(own) or (silent and not lost):
        return None
    if len(own) == 1:
        return own[0]
    has_failed = any(map(_has_failed, nodes))
    for number in silent:
        state = TrialState.CANCELLED if has_failed else TrialState.LOST
        nodes[number] = replace(
            nodes[number], state=state, reason=termination_causes.ENDED_BECAUSE if has_failed else lost
        )
    found = agent_answers.ended(ref, nodes, lambda _: 0.0)
    reason = found.reason
    if silent and found.state is TrialState.FAILED:
        reason = f"{reason.rstrip('.')}. Of node {silent[0]} no end was heard."
    return {**found.detail, "state": str(found.state), "reason": reason}


def _of_node(ref: JobRef, number: int, status: Status | None) -> JobStatus:
    one = JobRef(ref.backend, ref.job_id, {"host": f"node {number}"})
    if status is None:
        return JobStatus(one, TrialState.PREPARING)
    return JobStatus(one, TrialState(str(status["state"])), statuses.reason(status), cast("JsonObject", status))


def _has_failed(node: JobStatus) -> bool:
    """Return whether a node has failed by itself: one that was told to end may have been so for a lost one."""
    by_itself = not node.reason.startswith(termination_causes.ENDED_BECAUSE)
    return by_itself and node.state in {TrialState.FAILED, TrialState.CANCELLED}


def cancelled(last: Status | None) -> Status:
    """Return the end of a cancelled trial that could not tell it.

    Args:
        last: What it told last.
    """
    found = last or {"supervisor": list(NOBODY)}
    return {**found, "state": str(TrialState.CANCELLED), "reason": CANCELLED, "ended_s": time.time(), "groups": []}


def without_end(last: Status | None, state: TrialState, reason: str, printed: Sequence[str]) -> Status:
    """Return the end of a trial that has not told it.

    Args:
        last: What it told last.
        state: How its job has ended.
        reason: Why, in a sentence; "" where nobody says it.
        printed: The last lines of the job's log that are not the trial's.
    """
    lines = [line.strip() for line in printed if line.strip()][-_LAST_LINES:]
    told = f" Its job printed last: {' / '.join(lines)}" if lines else ""
    return {
        **(last or {}), "state": str(TrialState.FAILED if state is TrialState.SUCCEEDED else state),
        "reason": (reason or "It has written no end.") + told, "ended_s": time.time(), "groups": [],
        "supervisor": (last or {}).get("supervisor") or list(NOBODY),
    }  # fmt: skip


def receipt(status: Status, elapsed_s: float, note: str = "") -> CancelReceipt:
    """Return the receipt of a cancel.

    Args:
        status: How the trial has ended.
        elapsed_s: How long the cancel took.
        note: What else is to be told.
    """
    is_cancelled = status["state"] == str(TrialState.CANCELLED)
    meanwhile = "" if is_cancelled else f"it ended by itself meanwhile: {status['state']}"
    return replace(receipt_of(status), elapsed_s=elapsed_s, note="; ".join(filter(None, (note, meanwhile))))
