"""Ending a trial: its supervisors end their processes and prove it, then its objects are deleted."""

from __future__ import annotations

import asyncio
import json
import time

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.trial.cancel_receipt import CancelReceipt
from jupyter_autotrain.agent.trial.status import Status
from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.following.deleting import EndingPods
from jupyter_autotrain.backends.kubernetes.following.job_tracking import JobTracker
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.log_channel import judging
from jupyter_autotrain.errors import AutotrainError, BackendError

_SETTLE_S = 15.0  # how long the end may take to come back after the grace
_GONE_S = 60.0  # how long the cluster may take to delete the objects
_LOOK_AGAIN_S = 0.02


class Canceller:
    """Ends trials in one namespace.

    Args:
        tracker: What is known of the trials.
    """

    def __init__(self, tracker: JobTracker) -> None:
        self._api = tracker.api
        self._tracker = tracker

    def cancel(self, job: TrackedJob, grace_s: float) -> CancelReceipt:
        """End a trial; returns when its processes and its objects are gone.

        Raises:
            BackendError: That is not known.
        """
        begun_s = time.monotonic()
        if job.final is not None:
            notes = (f"it had ended before: {job.final['state']}", self._cleared(job))
            return judging.receipt(job.final, time.monotonic() - begun_s, "; ".join(filter(None, notes)))
        if fault := self._tracker.view.wait_until_listed(job):
            raise BackendError(f"{job.ref.job_id} cannot be cancelled now: {fault}.", "", "It is tried again.")
        if self._tracker.view.object_of(job) is None and not self._tracker.view.pods_of(job) and not job.followers:
            return CancelReceipt(note="it was never started")
        job.is_cancelled = True
        may_hasten = self._api.loop.call(self._end(job, grace_s))
        self._api.loop.call(self._delete(job, grace_s, may_hasten=may_hasten))
        unknown = self._api.loop.call(self._tracker.owned.until_gone(job))
        return judging.receipt(self._final(job), time.monotonic() - begun_s, unknown)

    def _cleared(self, job: TrackedJob) -> str:
        """Have the objects of a trial that has ended be gone; gives what is not known to be."""
        if job.is_pooled:  # its pod runs others, and is nobody's to delete
            return ""
        try:
            if fault := self._tracker.view.wait_until_listed(job):
                return fault
            self._api.loop.call(self._delete(job, 0.0, may_hasten=True))
            return self._api.loop.call(self._tracker.owned.until_gone(job))
        except AutotrainError as error:
            return error.found.rstrip(".")

    async def _end(self, job: TrackedJob, grace_s: float) -> bool:
        """Ask the supervisors, and wait for what they say; gives whether their pods need no grace any more.

        Where none can be asked, the deletion has to suffice, by which a pod tells its supervisor. Pods in which no
        supervisor has begun end at once when they are deleted.

        Raises:
            AutotrainError: A pod that runs several trials, and so is not deleted, cannot be asked.
        """
        if not job.is_pooled and not job.has_begun_anywhere():
            return True
        asked = await self._ask(job, grace_s)
        if asked:
            end_s = time.monotonic() + grace_s + _SETTLE_S
            while job.final is None and time.monotonic() < end_s:
                await asyncio.sleep(_LOOK_AGAIN_S)
        return asked or not job.has_begun_anywhere()

    async def _ask(self, job: TrackedJob, grace_s: float) -> bool:
        """Ask the supervisors of all running pods; whether one was asked."""
        request = json.dumps({"grace_s": grace_s, "reason": judging.CANCELLED}).encode()
        asked = False
        for pod in self._tracker.view.running_pods(job):
            try:
                at = self._tracker.view.address(job, pod)
                await exec_command.put(self._api, at, wire.CANCEL_FILE, request)
                asked = True
            except AutotrainError:
                if job.is_pooled:
                    raise
        return asked

    async def _delete(self, job: TrackedJob, grace_s: float, *, may_hasten: bool) -> None:
        """Delete the objects, and wait until they are gone."""
        await self._tracker.deleter.delete(job.workload.object_type, [job.ref.job_id])
        ending = EndingPods(self._api)
        end_s = time.monotonic() + grace_s + _GONE_S
        while self._tracker.view.object_of(job) is not None or self._tracker.view.pods_of(job):
            if time.monotonic() > end_s:
                raise BackendError(
                    f"The pods of {job.ref.job_id} are being deleted, but are not gone yet.",
                    "A node that answers.",
                    "It is tried again.",
                )
            if may_hasten:
                await ending.hasten(self._tracker.view.pods_of(job))
            await asyncio.sleep(_LOOK_AGAIN_S)

    @staticmethod
    def _final(job: TrackedJob) -> Status:
        """Return how it ended; where it had not begun, or could not say it, that it was cancelled."""
        if job.final is not None:
            return job.final
        status = judging.cancelled(job.collected.nodes[0].status())
        job.collected.close(status)
        job.final = status
        return status
