"""The objects of a home in a namespace, by one watch per kind; while a trial waits, also the events that say why."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi, selectors
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.following.watching import WatchedObjects
from jupyter_autotrain.backends.kubernetes.objects import naming, pod_parts
from jupyter_autotrain.backends.kubernetes.objects.fields import text
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import PodLife
from jupyter_autotrain.backends.kubernetes.objects.trial_reasons import told_at
from jupyter_autotrain.backends.kubernetes.objects.workload import EVENTS, PODS, ObjectType
from jupyter_autotrain.errors import AutotrainError

_PATIENCE_S = 3.0  # most trials begin sooner, and cost no request
_REFRESH_S = 5.0
_FORGOTTEN_S = 60.0  # a trial that nobody has asked about for so long waits no more


class WaitingEvents:
    """The warnings of a namespace.

    Args:
        api: The cluster.
        namespace: The namespace.
    """

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self._api = api
        self._path = EVENTS.path(namespace)
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[float, float]] = {}  # by name of the object: asked about first, and last
        self._events: list[JsonObject] = []
        self._asked_at = float("-inf")

    def of(self, name: str, pods: Iterable[str]) -> list[JsonObject]:
        """Return what is known about an object and its pods, the latest last; nothing before it has waited a while."""
        now = time.monotonic()
        with self._lock:
            first, _ = self._waiting.get(name, (now, now))
            self._waiting[name] = (first, now)
            if now - first < _PATIENCE_S:
                return []
            is_due = now - self._asked_at >= _REFRESH_S
            if is_due:
                self._asked_at = now
            found = self._events
        if is_due:
            self._api.loop.start(self._refresh(now))
        return _about(found, name, pods)

    async def read(self, name: str, pods: Iterable[str]) -> list[JsonObject]:
        """Return what the cluster says now about an object and its pods."""
        await self._refresh(time.monotonic())
        return _about(self._events, name, pods)

    async def _refresh(self, now: float) -> None:
        with contextlib.suppress(AutotrainError):  # who may not read events waits without a reason
            events, _ = await self._api.alist(self._path, selectors("", "type=Warning"))
            with self._lock:
                self._events = sorted(events, key=told_at)
                asked = self._waiting.items()
                self._waiting = {name: times for name, times in asked if now - times[1] < _FORGOTTEN_S}


def _about(events: Iterable[JsonObject], name: str, pods: Iterable[str]) -> list[JsonObject]:
    names = {name, *pods}
    return [event for event in events if _is_about(text(event, "involvedObject", "name"), names, name)]


def _is_about(found: str, names: set[str], name: str) -> bool:
    """Return whether it is one of these, or made of the object: Kueue's Workload, the Job of a JobSet or launcher."""
    return found in names or f"-{name}-" in found or found.startswith(f"{name}-")


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
        """Return the objects of a kind; they are watched from the first call on."""
        with self._lock:
            return self._watched.get(object_type) or self._begin_to_watch(object_type)

    def _begin_to_watch(self, object_type: ObjectType) -> WatchedObjects:
        is_pods = object_type == PODS
        watched = self._watched[object_type] = WatchedObjects(
            self._api, object_type, self.namespace, self._selector, self._on_pod if is_pods else self._on_object,
            pod_parts.slim_pod if is_pods else pod_parts.slim_object,
        )  # fmt: skip
        self._api.loop.start(watched.run())
        return watched

    def object_of(self, job: TrackedJob) -> JsonObject | None:
        """Return the object of a job; None where there is none."""
        for found in self.objects(job.workload.object_type).of_job(job.label):
            if naming.name_of(found) == job.name:
                return found
        return None

    def pods_of(self, job: TrackedJob) -> list[JsonObject]:
        """Return the pods of a job."""
        return self.pods.of_job(job.label)

    def events_of(self, job: TrackedJob) -> list[JsonObject]:
        """Return what the cluster warns of about a job that waits for a while."""
        return self.events_about(job.name, self.pods_of(job))

    def events_about(self, name: str, pods: Sequence[JsonObject]) -> list[JsonObject]:
        """Return what the cluster warns of about an object, and its pods, that wait for a while."""
        return self._events.of(name, list(map(naming.name_of, pods)))

    async def read_events_of(self, job: TrackedJob) -> list[JsonObject]:
        """Return what the cluster warns of about a job now."""
        return await self._events.read(job.name, list(map(naming.name_of, self.pods_of(job))))

    def running_pods(self, job: TrackedJob) -> list[JsonObject]:
        """Return the pods of a job in which commands can be run."""
        return [pod for pod in self.pods_of(job) if pod_parts.container_state(pod) == "running"]

    def life(self, job: TrackedJob, uid: str) -> PodLife:
        """Return whether the container of a pod may still write; it may as long as nothing is known of it."""
        if not self.is_listed(job):
            return PodLife.ALIVE
        for pod in self.pods_of(job):
            if naming.uid_of(pod) == uid:
                return PodLife.ALIVE if pod_parts.is_alive(pod) else PodLife.ENDED
        return PodLife.GONE

    def address(self, job: TrackedJob, pod: JsonObject) -> PodAddress:
        """Return where our container of a pod is."""
        python = str(job.ref.data.get("python") or "python3")
        return PodAddress(self.namespace, naming.name_of(pod), pod_parts.container_name(pod), python)

    def fault(self, job: TrackedJob) -> str:
        """Return why it is not known what there is of a job; "" when it is."""
        return self.objects(job.workload.object_type).fault or self.pods.fault

    def is_listed(self, job: TrackedJob) -> bool:
        """Return whether it is known what there is of a job."""
        return self.knows(job.workload.object_type)

    def knows(self, object_type: ObjectType) -> bool:
        """Return whether it is known which objects of a kind, and which pods, there are."""
        watched = (self.objects(object_type), self.pods)
        return all(one.wait_until_listed(0.0) and not one.fault for one in watched)

    def wait_until_listed(self, job: TrackedJob, timeout_s: float = LISTED_S) -> str:
        """Wait until it is known what there is; gives why it is not."""
        for watched in (self.objects(job.workload.object_type), self.pods):
            if not watched.wait_until_listed(timeout_s):
                return watched.fault or "the cluster does not answer"
        return ""
