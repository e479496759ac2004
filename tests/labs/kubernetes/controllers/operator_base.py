"""Common part of the controllers of Kubeflow's kinds: read, make, delete, and write the status when it changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from tests.labs.kubernetes.controllers.kubeflow_status import holds, is_finished, set_condition
from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.ownership import owned, owned_key, owner_reference
from tests.labs.kubernetes.controllers.recorder import EventRecorder
from tests.labs.kubernetes.controllers.times import seconds_of, stamp
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.metadata import copied
from tests.labs.kubernetes.objects.resources import PODS, SERVICES, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore


class OperatorController:
    """A controller of one custom kind.

    Args:
        store: All objects.
        loop: What runs it.
        resource: The kind.
        made: The kinds of what it makes.
        operator: Its name, as events say it.
    """

    def __init__(
        self, store: ObjectStore, loop: ControlLoop, resource: Resource, made: Sequence[Resource], operator: str
    ) -> None:
        self.watches: Sequence[Resource] = (resource, *made)
        self.store = store
        self.resource = resource
        self._loop = loop
        self.events = EventRecorder(store, operator)

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Return the object itself, or the owner of what was made for it."""
        if resource.key == self.resource.key:
            return [(found["metadata"]["namespace"], found["metadata"]["name"])]
        return owned_key(found, self.resource.kind)

    def find(self, key: Key) -> Json | None:
        """Return the object, to be changed at will; None: there is none, or it goes."""
        try:
            found = self.store.get(self.resource, *key)
        except ApiError:
            return None
        of_this_version = found["apiVersion"] == self.resource.api_version
        return found if of_this_version and "deletionTimestamp" not in found["metadata"] else None

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.store.clock()

    def made(self, resource: Resource, owner: Json) -> list[Json]:
        """Return what was made for an object."""
        return owned(self.store.list(resource, owner["metadata"]["namespace"])[0], owner)

    def make(self, resource: Resource, owner: Json, body: Json) -> Json:
        """Make something for an object, unless it is there."""
        namespace = owner["metadata"]["namespace"]
        metadata = {**body["metadata"], "namespace": namespace, "ownerReferences": [owner_reference(owner)]}
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body, "metadata": metadata}
        try:
            return self.store.get(resource, namespace, metadata["name"])
        except ApiError:
            return self._create(resource, owner, whole)

    def _create(self, resource: Resource, owner: Json, whole: Json) -> Json:
        try:
            return self.store.create(resource, owner["metadata"]["namespace"], whole)
        except ApiError as error:
            message = f"Error creating: {error.message}"
            self.events.record(owner, f"FailedCreate{resource.kind}", message, "Warning")
            raise

    def delete(self, resource: Resource, found: Json) -> None:
        """Delete something, unless it goes already."""
        if "deletionTimestamp" not in found["metadata"]:
            self.store.delete(resource, found["metadata"]["namespace"], found["metadata"]["name"])

    def write_status(self, found: Json, status: Json) -> None:
        """Write the status, when it is another than the object has."""
        if status != found.get("status", {}):
            metadata = found["metadata"]
            changed = {**found, "status": status}
            self.store.replace(self.resource, metadata["namespace"], metadata["name"], changed, "status")


class JobController(OperatorController):
    """A controller of a kind with `runPolicy` and conditions, as the training operator has them."""

    def begin(self, job: Json) -> Json:
        """Return the status to work on, with what is known of a job that is new."""
        status: Json = copied(job.get("status") or {})
        if not status.get("conditions"):
            self.condition(job, status, "Created", f"{job['kind']} {job['metadata']['name']} is created.")
        return status

    def condition(self, job: Json, status: Json, kind: str, message: str, reason: str = "") -> None:
        """Set a condition that holds."""
        set_condition(status, kind, "True", f"{job['kind']}{reason or kind}", message, self.now)

    def is_suspended(self, job: Json, status: Json) -> bool:
        """Do what a suspended job needs, or what one does that goes on; whether it is suspended."""
        kind = job["kind"]
        name = job["metadata"]["name"]
        if not job["spec"].get("runPolicy", {}).get("suspend"):
            if holds(status, "Suspended"):
                set_condition(status, "Suspended", "False", f"{kind}Resumed", f"{kind} {name} is resumed.", self.now)
                status["startTime"] = stamp(self.now)
            return False
        message = f"{kind} {name} is suspended."
        if holds(status, "Running"):
            set_condition(status, "Running", "False", f"{kind}Suspended", message, self.now)
        if not holds(status, "Suspended"):
            self.condition(job, status, "Suspended", message)
        for counts in status.get("replicaStatuses", {}).values():
            counts.pop("active", None)
        self.delete_pods(job)
        return True

    def delete_pods(self, job: Json) -> None:
        """Delete pods and Services."""
        for resource in (PODS, SERVICES):
            for found in self.made(resource, job):
                self.delete(resource, found)

    def deadline_in(self, job: Json, status: Json) -> float | None:
        """Seconds until a job is over its time limit; None: it has none."""
        limit = job["spec"].get("runPolicy", {}).get("activeDeadlineSeconds")
        if limit is None or "startTime" not in status:
            return None
        return seconds_of(status["startTime"]) + float(limit) - self.now

    def fail_at_deadline(self, job: Json, status: Json) -> None:
        """End a job that is over its time limit."""
        name = job["metadata"]["name"]
        status.setdefault("completionTime", stamp(self.now))
        self.delete_pods(job)
        message = f"Job {name} has failed because it was active longer than specified deadline"
        self.condition(job, status, "Failed", message)

    def clean_up(self, job: Json, status: Json) -> float | None:
        """Delete what a finished job leaves, as its policy says; seconds until the job itself is deleted."""
        policy = job["spec"].get("runPolicy", {})
        which = policy.get("cleanPodPolicy", "None")
        for pod in self.made(PODS, job) if which != "None" else []:
            if which == "All" or pod.get("status", {}).get("phase") in ("Pending", "Running"):
                self.delete(PODS, pod)
        ttl = policy.get("ttlSecondsAfterFinished")
        if ttl is None or "completionTime" not in status:
            return None
        left = seconds_of(status["completionTime"]) + float(ttl) - self.now
        if left <= 0:
            self.delete(self.resource, job)
        return max(left, 0.0)


class TrainingOperatorController(JobController, ABC):
    """A controller of the training operator (`kubeflow.org/v1`): pods that it makes and reads itself."""

    def reconcile(self, key: Key) -> float | None:
        """Compare pods with what the job asks for, then tell the status."""
        job = self.find(key)
        if job is None:
            return None
        status = self.begin(job)
        if is_finished(status):
            return self.clean_up(job, status)
        wait = None if self.is_suspended(job, status) else self._within_deadline(job, status)
        self.write_status(job, status)
        return wait

    def _within_deadline(self, job: Json, status: Json) -> float | None:
        status.setdefault("startTime", stamp(self.now))
        left = self.deadline_in(job, status)
        if left is not None and left <= 0:
            self.fail_at_deadline(job, status)
            return None
        self._run(job, status)
        return left

    @abstractmethod
    def _run(self, job: Json, status: Json) -> None:
        """Make what is missing, and tell how it is."""
