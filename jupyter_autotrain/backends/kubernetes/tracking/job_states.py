"""The state of a trial, from what has come of it and what the cluster says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.tracking.job_tracking import JobTracker
from jupyter_autotrain.backends.kubernetes.tracking.start_keeping import state_before_start
from jupyter_autotrain.backends.local import status as statuses
from jupyter_autotrain.backends.local.status import Status
from jupyter_autotrain.core.backend import JobRef, JobStatus
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.states import TrialState

_COLLECTING = "is ending: what it has left is collected"


def status_of(job: TrackedJob, ref: JobRef, tracker: JobTracker) -> JobStatus:
    """How a trial stands now."""
    fault = "" if job.final is not None else tracker.view.wait_until_listed(job) or _fault(job, tracker)
    if fault or job.final is not None:
        return known_status(job, ref, fault)
    own = [node.status() for node in job.collected.nodes]
    if job.workload.rescales and (told := _made_anew(job, tracker)):
        return JobStatus(ref, TrialState.RUNNING, told)
    own = own[:1] if job.is_elastic else own
    if any(status is not None for status in own):
        return _going_on(ref, own)
    return _not_begun(job, ref, tracker)


def known_status(job: TrackedJob, ref: JobRef, fault: str) -> JobStatus:
    """Return how a trial stood when something came of it last; with a doubt, unless that was its end.

    Args:
        job: The trial.
        ref: The reference that is asked about.
        fault: Why the cluster does not say how it stands now.
    """
    if job.final is not None:
        return _final(ref, job.final)
    own = [node.status() for node in job.collected.nodes]
    counted = own[:1] if job.is_elastic else own
    known = _going_on(ref, counted) if any(counted) else JobStatus(ref, TrialState.PREPARING)
    return replace(known, reason="", doubt=fault, unreachable=True)


def _fault(job: TrackedJob, tracker: JobTracker) -> str:
    of_logs = [follower.fault for follower in job.followers.values() if follower.fault and not follower.is_done()]
    return job.fault or tracker.view.fault(job) or "".join(of_logs[:1])


def _made_anew(job: TrackedJob, tracker: JobTracker) -> str:
    """What a trial waits for that ran before, and whose pods are made anew; "" for one that does not."""
    found = tracker.view.object_of(job)
    told = job.workload.state(found, tracker.view.pods_of(job)) if found is not None else None
    return told.reason if told is not None and told.state is TrialState.RUNNING else ""


def _not_begun(job: TrackedJob, ref: JobRef, tracker: JobTracker) -> JobStatus:
    """Nothing has come of it yet."""
    told = state_before_start(job, tracker.view)
    if told is None:
        goes = tracker.view.pods_of(job) or job.is_finishing
        return JobStatus(ref, TrialState.PREPARING, "is being deleted" if goes else "")
    return JobStatus(ref, TrialState.PREPARING, "" if told.state.is_final else job.waits_for or told.reason)


def _final(ref: JobRef, status: Status) -> JobStatus:
    return JobStatus(ref, TrialState(str(status["state"])), statuses.reason(status), cast("JsonObject", status))


def _going_on(ref: JobRef, own: Sequence[Status | None]) -> JobStatus:
    """By the first node; the trial runs when all do."""
    first = own[0] or {}
    states = [TrialState(str(status["state"])) if status else TrialState.PREPARING for status in own]
    if TrialState.PREPARING in states:
        waiting = next((statuses.reason(status) for status in own if status and status["reason"]), "")
        return JobStatus(ref, TrialState.PREPARING, waiting, cast("JsonObject", first))
    is_ending = all(state.is_final for state in states)
    detail: JsonObject = cast("JsonObject", {**first, "state": str(TrialState.RUNNING)})
    return JobStatus(ref, TrialState.RUNNING, _COLLECTING if is_ending else "", detail)
