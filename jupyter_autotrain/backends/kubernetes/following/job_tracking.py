"""All trials of a home in a namespace, as far as somebody asks for them: one watch per kind, one follow per live pod.

Everything here runs in the loop of the connection, but for what its caller waits for. It keeps nothing that a restart
would miss: objects are found by their labels, and what has come of a trial lies in the home.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.deleting import ObjectDeleter
from jupyter_autotrain.backends.kubernetes.following.finishing import JobFinisher
from jupyter_autotrain.backends.kubernetes.following.gangs import GangGate, GangKeeper
from jupyter_autotrain.backends.kubernetes.following.keeping import StartKeeper, state_before_start
from jupyter_autotrain.backends.kubernetes.following.log_following import LogFollower
from jupyter_autotrain.backends.kubernetes.following.pilot_keeping import PilotKeeper
from jupyter_autotrain.backends.kubernetes.following.tracked_job import OwnedObjects, TrackedJob
from jupyter_autotrain.backends.kubernetes.objects import naming, pod_parts, trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadState
from jupyter_autotrain.backends.log_channel import judging
from jupyter_autotrain.core.backend import JobRef, JobStatus

_LOOK_AGAIN_S = 1.0
_log = logging.getLogger(__name__)


class JobTracker:
    """The trials of a home in one namespace.

    Args:
        api: The cluster.
        namespace: The namespace.
        home: The identity of the home.
        on_news: Takes the id of a job that something is new of.
        own_code: Tells the cluster which objects use the code that was sent.
    """

    def __init__(
        self, api: KubernetesApi, namespace: str, home: str, on_news: Callable[[str], None],
        own_code: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:  # fmt: skip
        self.api = api
        self._on_news = on_news
        self._is_looking = False
        self._took_over = False  # whether jobs were found that an earlier manager has submitted
        self._jobs: dict[str, TrackedJob] = {}  # by the label of the job
        self._tasks: set[asyncio.Task[None]] = set()
        self.deleter = ObjectDeleter(api, namespace, home, own_code)
        self.owned = OwnedObjects(api, namespace, home)
        self.view = ClusterView(api, namespace, home, self._pod_changed, self._object_changed)
        self.finisher = JobFinisher(api, self.view, self.deleter)
        self.gangs = GangKeeper(api, self.view, self._all, self.consider, GangGate())
        self.starts = StartKeeper(api, self.view, self._all, self.consider)
        self.pilots = PilotKeeper(api, self.view, self._all, self.consider, home)

    def _all(self) -> list[TrackedJob]:
        return list(self._jobs.values())

    def track(self, job: TrackedJob, *, is_new: bool = False) -> TrackedJob:
        """Follow a job from now on; gives the one that is followed already where there is one.

        Args:
            job: The job.
            is_new: Whether it was submitted just now, from here.
        """
        if self._jobs.get(job.label) is job:
            return job
        known = self._jobs.setdefault(job.label, job)
        self._took_over = self._took_over or (known is job and not is_new)
        if known is job:
            self.api.loop.start(self._begin(job))
            if job.nodes > 1:
                self.gangs.begin()
            if job.is_pooled:
                self.pilots.begin()
        return known

    def known(self, job_id: str) -> TrackedJob | None:
        """Return a job that is followed."""
        return self._jobs.get(naming.label_value(job_id))

    async def _begin(self, job: TrackedJob) -> None:
        if not self._is_looking:
            self._is_looking = True
            self.start(self._look_again())
            self.starts.begin()
        self.view.objects(job.workload.object_type)
        for pod in self.view.pods_of(job):
            self._notice_pod_made_again(job, pod)
            self._follow(job, pod)
        self.consider(job)

    def _object_changed(self, found: JsonObject, is_gone: bool) -> None:  # noqa: ARG002 - as the watch calls it
        job = self._jobs.get(naming.job_label(found))
        if job is not None:
            self.consider(job)

    def _pod_changed(self, pod: JsonObject, is_gone: bool) -> None:
        job = self._jobs.get(naming.job_label(pod))
        if job is None:
            return
        job.disruption = trial_reasons.from_outside([pod]) or job.disruption
        if not is_gone:
            self._notice_pod_made_again(job, pod)
            self._follow(job, pod)
        self.consider(job)

    @staticmethod
    def _notice_pod_made_again(job: TrackedJob, pod: JsonObject) -> None:
        """End a trial whose controller makes a deleted pod again: that would begin from nothing."""
        goes_on = job.is_elastic or job.is_pooled or job.workload.node_variables.run
        known = job.collected.pods()
        is_known = naming.uid_of(pod) in known or len(known) < job.nodes
        if goes_on or is_known or not pod_parts.has_started(pod) or not job.has_begun() or job.has_ended():
            return
        reason = f"A pod of it was deleted while it ran; {naming.name_of(pod)} was made in its place."
        job.given_up = job.given_up or job.disruption or WorkloadState(TrialState.LOST, reason)

    def _follow(self, job: TrackedJob, pod: JsonObject) -> None:
        uid = naming.uid_of(pod)
        if job.final is not None or uid in job.followers or not pod_parts.has_started(pod):
            return
        job.collected.note_pod(uid)
        if not job.has_ended():
            job.disruption = None  # what was done to pods before it is over
        follower = job.followers[uid] = LogFollower(
            self.api, self.view.address(job, pod), job.collected, lambda: self.view.life(job, uid),
            lambda: self._come(job), job.ref.job_id if job.is_pooled else "",
        )  # fmt: skip
        self.start(follower.run())

    def _come(self, job: TrackedJob) -> None:
        self.consider(job)
        self._on_news(job.ref.job_id)

    def consider(self, job: TrackedJob) -> None:
        """Something is new of a job: settle its end where it has come."""
        if job.final is None and not job.is_finishing and self.finisher.is_over(job):
            job.is_finishing = True
            self.start(self._finish(job))
        elif job.final is None:
            self._on_news(job.ref.job_id)

    async def _finish(self, job: TrackedJob) -> None:
        try:
            await self.finisher.finish(job)
            self._jobs.pop(job.label, None)
            job.followers.clear()
            if self._took_over and not self._jobs:
                self._took_over = False
                self.start(self.deleter.delete_unowned_code())
        except Exception as error:  # noqa: BLE001 - whatever it is: it is tried again, and shown meanwhile
            _log.exception("the end of %s cannot be settled", job.ref.job_id)
            job.fault = str(error)
        finally:
            job.is_finishing = False
        self._on_news(job.ref.job_id)

    @staticmethod
    def follower_of(job: TrackedJob, pod: JsonObject) -> LogFollower | None:
        """Return the follower of a pod's log."""
        return job.followers.get(naming.uid_of(pod))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin something in the loop."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look_again(self) -> None:
        """Look again at what depends on the time alone."""
        while True:
            await asyncio.sleep(_LOOK_AGAIN_S)
            for job in list(self._jobs.values()):
                with contextlib.suppress(Exception):
                    for follower in job.followers.values():
                        follower.end_if_silent()
                    if not job.is_finishing and job.final is None and self.finisher.is_over(job):
                        self.consider(job)


def status_of(job: TrackedJob, ref: JobRef, tracker: JobTracker) -> JobStatus:
    """Return how a trial stands now."""
    if job.final is not None:
        return known_status(job, ref, "")
    fault = tracker.view.wait_until_listed(job) or _fault(job, tracker)
    if fault:
        return known_status(job, ref, fault)
    own = [node.status() for node in job.collected.nodes]
    if job.workload.rescales and (told := _made_anew(job, tracker)):
        return JobStatus(ref, TrialState.RUNNING, told)
    own = own[:1] if job.is_elastic else own
    if any(status is not None for status in own):
        return judging.going_on(ref, own)
    return _not_begun(job, ref, tracker)


def known_status(job: TrackedJob, ref: JobRef, fault: str) -> JobStatus:
    """Return how a trial stood when something came of it last; with a doubt, unless that was its end.

    Args:
        job: The trial.
        ref: The reference that is asked about.
        fault: Why the cluster does not say how it stands now.
    """
    if job.final is not None:
        return judging.final(ref, job.final)
    own = [node.status() for node in job.collected.nodes]
    counted = own[:1] if job.is_elastic else own
    known = judging.going_on(ref, counted) if any(counted) else JobStatus(ref, TrialState.PREPARING)
    return replace(known, reason="", doubt=fault, unreachable=True)


def _fault(job: TrackedJob, tracker: JobTracker) -> str:
    of_logs = [follower.fault for follower in job.followers.values() if follower.fault and not follower.is_done()]
    return job.fault or tracker.view.fault(job) or "".join(of_logs[:1])


def _made_anew(job: TrackedJob, tracker: JobTracker) -> str:
    """Return what a trial waits for that ran before, and whose pods are made anew; "" for one that does not."""
    found = tracker.view.object_of(job)
    told = job.workload.state(found, tracker.view.pods_of(job)) if found is not None else None
    return told.reason if told is not None and told.state is TrialState.RUNNING else ""


def _not_begun(job: TrackedJob, ref: JobRef, tracker: JobTracker) -> JobStatus:
    """Return the state of a trial of which nothing has come yet."""
    told = state_before_start(job, tracker.view)
    if told is None:
        goes = tracker.view.pods_of(job) or job.is_finishing
        return JobStatus(ref, TrialState.PREPARING, "is being deleted" if goes else "")
    return JobStatus(ref, TrialState.PREPARING, "" if told.state.is_final else job.waits_for or told.reason)
