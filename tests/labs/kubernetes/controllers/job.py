"""The Job controller: Indexed and NonIndexed Jobs of batch/v1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.labs.kubernetes.controllers.job_pass import JobPass
from tests.labs.kubernetes.controllers.job_pods import remove_finalizer
from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.ownership import owned, owned_key
from tests.labs.kubernetes.controllers.recorder import EventRecorder
from tests.labs.kubernetes.objects.resources import JOBS, PODS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_OWN_NAME = "kubernetes.io/job-controller"


class JobController:
    """Makes and counts the pods of Jobs.

    Args:
        first_backoff_s: Before a failed pod is made again; then twice as long each time.
    """

    watches: Sequence[Resource] = (JOBS, PODS)

    def __init__(self, store: ObjectStore, loop: ControlLoop, first_backoff_s: float) -> None:
        self._store = store
        self._loop = loop
        self._first_backoff_s = first_backoff_s
        self._events = EventRecorder(store, "job-controller")

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Return the Job itself, or the owner of a pod."""
        if resource.key == JOBS.key:
            return [(found["metadata"]["namespace"], found["metadata"]["name"])]
        return owned_key(found, "Job")

    def reconcile(self, key: Key) -> float | None:
        """Count what has ended, decide, and make or delete pods."""
        job = self._loop.find(JOBS, key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            self._release_pods(key, job)
            return None
        if job["spec"].get("managedBy", _OWN_NAME) != _OWN_NAME:
            return None
        return JobPass(self._store, self._events, job, self._pods(job), self._first_backoff_s).run()

    def _pods(self, job: Json) -> list[Json]:
        found = [
            item for resource, item in self._loop.cache.owned_by(job["metadata"]["uid"]) if resource.key == PODS.key
        ]
        return owned(found, job)

    def _release_pods(self, key: Key, job: Json | None) -> None:
        """Pods of a Job that goes are no longer counted."""
        if job is not None:
            pods = self._pods(job)
        else:
            pods = [pod for pod in self._loop.objects(PODS) if key in owned_key(pod, "Job")]
        for pod in pods:
            remove_finalizer(self._store, pod)
