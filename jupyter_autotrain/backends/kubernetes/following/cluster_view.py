"""What there is of a home in a namespace, by one watch per kind: objects of trials, and their pods."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.following.waiting_events import WaitingEvents
from jupyter_autotrain.backends.kubernetes.following.watching import WatchedObjects
from jupyter_autotrain.backends.kubernetes.objects import naming, pod_view
from jupyter_autotrain.backends.kubernetes.objects.object_types import PODS
from jupyter_autotrain.backends.kubernetes.objects.pod_view import PodLife
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.core.json import JsonObject

LISTED_S = 15.0  # how long the first list may take before nothing is known


class ClusterView:
    """The objects of a home in one namespace.

    Args:
        api: The cluster.
        namespace: The namespace.
        home: The identity of the home.
        on_pod: Called in the loop with a pod that is new, different or gone.
        on_object: The same with an object of a trial.
    """

    def __init__(
        self, api: KubernetesApi, namespace: str, home: str, on_pod: Callable[[JsonObject, bool], None],
        on_object: Callable[[JsonObject, bool], None],
    ) -> None:  # fmt: skip
        self.namespace = namespace
        self._events = WaitingEvents(api, namespace)
        self._api = api
        self._selector = naming.selector_of_home(home)
        self._on_pod = on_pod
        self._on_object = on_object
        self._lock = threading.Lock()
        self._watched: dict[ObjectType, WatchedObjects] = {}

    @property
    def pods(self) -> WatchedObjects:
        """The pods."""
        return self.objects(PODS)

    def objects(self, object_type: ObjectType) -> WatchedObjects:
        """The objects of a kind; they are watched from the first call on."""
        with self._lock:
            return self._watched.get(object_type) or self._begin_to_watch(object_type)

    def _begin_to_watch(self, object_type: ObjectType) -> WatchedObjects:
        is_pods = object_type == PODS
        watched = self._watched[object_type] = WatchedObjects(
            self._api, object_type, self.namespace, self._selector, self._on_pod if is_pods else self._on_object,
            pod_view.slim_pod if is_pods else pod_view.slim_object,
        )  # fmt: skip
        self._api.loop.start(watched.run())
        return watched

    def object_of(self, job: TrackedJob) -> JsonObject | None:
        """The object of a job; None where there is none."""
        for found in self.objects(job.workload.object_type).of_job(job.label):
            if naming.name_of(found) == job.name:
                return found
        return None

    def pods_of(self, job: TrackedJob) -> list[JsonObject]:
        """The pods of a job."""
        return self.pods.of_job(job.label)

    def events_of(self, job: TrackedJob) -> list[JsonObject]:
        """What the cluster warns of about a job that waits for a while."""
        return self.events_about(job.name, self.pods_of(job))

    def events_about(self, name: str, pods: Sequence[JsonObject]) -> list[JsonObject]:
        """What the cluster warns of about an object, and its pods, that wait for a while."""
        return self._events.of(name, [naming.name_of(pod) for pod in pods])

    async def read_events_of(self, job: TrackedJob) -> list[JsonObject]:
        """Return what the cluster warns of about a job now."""
        return await self._events.read(job.name, [naming.name_of(pod) for pod in self.pods_of(job)])

    def running_pods(self, job: TrackedJob) -> list[JsonObject]:
        """The pods of a job in which commands can be run."""
        return [pod for pod in self.pods_of(job) if pod_view.container_state(pod) == "running"]

    def life(self, job: TrackedJob, uid: str) -> PodLife:
        """Whether the container of a pod may still write; it may as long as nothing is known of it."""
        if not self.is_listed(job):
            return PodLife.ALIVE
        for pod in self.pods_of(job):
            if naming.uid_of(pod) == uid:
                return PodLife.ALIVE if pod_view.is_alive(pod) else PodLife.ENDED
        return PodLife.GONE

    def address(self, job: TrackedJob, pod: JsonObject) -> PodAddress:
        """Where our container of a pod is."""
        python = str(job.ref.data.get("python") or "python3")
        return PodAddress(self.namespace, naming.name_of(pod), pod_view.container_name(pod), python)

    def fault(self, job: TrackedJob) -> str:
        """Why it is not known what there is of a job; "" when it is."""
        return self.objects(job.workload.object_type).fault or self.pods.fault

    def is_listed(self, job: TrackedJob) -> bool:
        """Whether it is known what there is of a job."""
        return self.knows(job.workload.object_type)

    def knows(self, object_type: ObjectType) -> bool:
        """Whether it is known which objects of a kind, and which pods, there are."""
        watched = (self.objects(object_type), self.pods)
        return all(one.wait_until_listed(0.0) and not one.fault for one in watched)

    def wait_until_listed(self, job: TrackedJob, timeout_s: float = LISTED_S) -> str:
        """Wait until it is known what there is; gives why it is not."""
        for watched in (self.objects(job.workload.object_type), self.pods):
            if not watched.wait_until_listed(timeout_s):
                return watched.fault or "the cluster does not answer"
        return ""
