"""All trials of a home in a namespace, as far as somebody asks for them: one watch per kind, one follow per live pod.

Everything here runs in the loop of the connection, but for what its caller waits for. It keeps nothing that a restart
would miss: objects are found by their labels, and what has come of a trial lies in the home.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from jupyter_autotrain.backends.kubernetes import naming, pod_view
from jupyter_autotrain.backends.kubernetes.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.deleting import ObjectDeleter
from jupyter_autotrain.backends.kubernetes.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.finishing import JobFinisher
from jupyter_autotrain.backends.kubernetes.log_following import LogFollower
from jupyter_autotrain.backends.kubernetes.object_types import PODS
from jupyter_autotrain.backends.kubernetes.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.watching import WatchedObjects
from jupyter_autotrain.backends.kubernetes.workload import ObjectType
from jupyter_autotrain.core.json import JsonObject

LISTED_S = 15.0  # how long the first list may take before nothing is known
_LOOK_AGAIN_S = 1.0
_log = logging.getLogger(__name__)


class JobTracker:
    """The trials of a home in one namespace.

    Args:
        api: The cluster.
        namespace: The namespace.
        home: The digest of the home.
        on_news: Takes the id of a job that something is new of.
    """

    def __init__(self, api: KubernetesApi, namespace: str, home: str, on_news: Callable[[str], None]) -> None:
        self._api = api
        self._namespace = namespace
        self._home = home
        self._on_news = on_news
        self._lock = threading.Lock()
        self._jobs: dict[str, TrackedJob] = {}  # by the label of the job
        self._watched: dict[ObjectType, WatchedObjects] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.deleter = ObjectDeleter(api, namespace, home)
        self.finisher = JobFinisher(api, self)

    @property
    def pods(self) -> WatchedObjects:
        """The pods of the home."""
        return self._watch(PODS)

    def objects(self, object_type: ObjectType) -> WatchedObjects:
        """The objects of a kind."""
        return self._watch(object_type)

    def _watch(self, object_type: ObjectType) -> WatchedObjects:
        with self._lock:
            return self._watched.get(object_type) or self._begin_to_watch(object_type)

    def _begin_to_watch(self, object_type: ObjectType) -> WatchedObjects:
        is_pods = object_type == PODS
        watched = self._watched[object_type] = WatchedObjects(
            self._api, object_type, self._namespace, naming.selector_of_home(self._home),
            self._pod_changed if is_pods else self._object_changed,
            pod_view.slim_pod if is_pods else pod_view.slim_object,
        )  # fmt: skip
        self._api.loop.start(watched.run())
        if len(self._watched) == 1:
            self._api.loop.start(self._look_again())
        return watched

    def track(self, job: TrackedJob) -> TrackedJob:
        """Follow a job from now on; gives the one that is followed already where there is one."""
        known = self._jobs.setdefault(job.label, job)
        if known is job:
            self.pods  # noqa: B018 - begins to watch
            self.objects(job.workload.object_type)
            self._api.loop.start(self._begin(job))
        return known

    def known(self, job_id: str) -> TrackedJob | None:
        """A job that is followed."""
        return self._jobs.get(naming.label_value(job_id))

    async def _begin(self, job: TrackedJob) -> None:
        for pod in self.pods.of_job(job.label):
            self._follow(job, pod)
        self.consider(job)

    def object_of(self, job: TrackedJob) -> JsonObject | None:
        """The object of a job; None where there is none."""
        for found in self.objects(job.workload.object_type).of_job(job.label):
            if naming.name_of(found) == job.name:
                return found
        return None

    def wait_until_listed(self, job: TrackedJob) -> str:
        """Wait until it is known what there is; gives why it is not."""
        for watched in (self.objects(job.workload.object_type), self.pods):
            if not watched.wait_until_listed(LISTED_S):
                return watched.fault or "the cluster does not answer"
        return ""

    def _object_changed(self, found: JsonObject, is_gone: bool) -> None:  # noqa: ARG002 - as the watch calls it
        job = self._jobs.get(naming.job_label(found))
        if job is not None:
            self.consider(job)

    def _pod_changed(self, pod: JsonObject, is_gone: bool) -> None:
        job = self._jobs.get(naming.job_label(pod))
        if job is None:
            return
        if not is_gone:
            self._follow(job, pod)
        self.consider(job)

    def _follow(self, job: TrackedJob, pod: JsonObject) -> None:
        uid = naming.uid_of(pod)
        if job.final is not None or uid in job.followers or not pod_view.has_started(pod):
            return
        follower = job.followers[uid] = LogFollower(
            self._api, self.address(job, pod), job.collected, lambda: self._is_alive(job, uid), lambda: self._come(job)
        )
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
        except Exception as error:  # noqa: BLE001 - whatever it is: it is tried again, and shown meanwhile
            _log.exception("the end of %s cannot be settled", job.ref.job_id)
            job.fault = str(error)
        finally:
            job.is_finishing = False
        self._on_news(job.ref.job_id)

    def _is_alive(self, job: TrackedJob, uid: str) -> bool:
        return any(naming.uid_of(pod) == uid and pod_view.is_alive(pod) for pod in self.pods.of_job(job.label))

    def address(self, job: TrackedJob, pod: JsonObject) -> PodAddress:
        """Where our container of a pod is."""
        python = str(job.ref.data.get("python") or "python3")
        return PodAddress(self._namespace, naming.name_of(pod), pod_view.container_name(pod), python)

    def running_pods(self, job: TrackedJob) -> list[JsonObject]:
        """The pods of a job in which commands can be run."""
        return [pod for pod in self.pods.of_job(job.label) if pod_view.container_state(pod) == "running"]

    @staticmethod
    def follower_of(job: TrackedJob, pod: JsonObject) -> LogFollower | None:
        """Who follows a pod."""
        return job.followers.get(naming.uid_of(pod))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin something in the loop."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look_again(self) -> None:
        """What depends on the time alone."""
        while True:
            await asyncio.sleep(_LOOK_AGAIN_S)
            for job in list(self._jobs.values()):
                with contextlib.suppress(Exception):
                    if not job.is_finishing and job.final is None and self.finisher.is_over(job):
                        self.consider(job)
