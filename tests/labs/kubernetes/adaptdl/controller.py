"""A small controller of AdaptDLJobs: groups of pods on the nodes of an allocation, as AdaptDL's own makes them.

The allocation is made here too, when a job is new and when its hints change; AdaptDL's allocator looks once a minute,
and weighs all jobs. Whoever else changes the allocation of a job (`status.allocation`) has it rescaled as well.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Sequence

from tests.labs.kubernetes.adaptdl import pods as adaptdl_pods
from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.times import stamp
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import NODES, PODS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

ADAPTDL_JOBS = Resource("adaptdl.petuum.com", "v1", "adaptdljobs", "AdaptDLJob", short_names=("adljob", "adljobs"))
JOB_LABEL = "adaptdl/job"
SCHEMA: Json = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 63}}},
        "spec": {
            "type": "object",
            "required": ["template"],
            "properties": {
                "minReplicas": {"type": "integer", "minimum": 0},
                "maxReplicas": {"type": "integer", "minimum": 1},
                "preemptible": {"type": "boolean"},
                "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
_ENDED = ("Succeeded", "Failed")
_ALLOCATE_AGAIN_S = 0.5


class AdaptDLController:
    """Makes and ends groups of pods.

    Args:
        store: The objects.
    """

    watches: Sequence[Resource] = (ADAPTDL_JOBS, PODS)

    def __init__(self, store: ObjectStore, _loop: ControlLoop | None = None) -> None:
        self._store = store
        self._hints: dict[str, Json] = {}  # by the uid of a job: for which its allocation was made
        store.resources.add(ADAPTDL_JOBS, SCHEMA)

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Yield the job itself, or that of a pod."""
        metadata = found["metadata"]
        if resource.key == ADAPTDL_JOBS.key:
            yield metadata["namespace"], metadata["name"]
        elif name := (metadata.get("labels") or {}).get(JOB_LABEL):
            yield metadata["namespace"], name

    def reconcile(self, key: Key) -> float | None:
        """One step of the phases of a job."""
        namespace, name = key
        pods = self._store.list(PODS, namespace, label_selector=f"{JOB_LABEL}={name}")[0]
        try:
            job = self._store.get(ADAPTDL_JOBS, namespace, name)
        except ApiError as error:
            if error.code != 404:
                raise
            self._delete(pods)
            return None
        if job["metadata"].get("deletionTimestamp"):
            return None
        status = job.get("status") or {}
        changed = self._next(job, status, pods)
        changes = {field: value for field, value in changed.items() if status.get(field) != value}
        if changes:
            self._store.patch(ADAPTDL_JOBS, namespace, name, {"status": changes}, subresource="status")
        is_waiting = "allocation" in changed and not changed["allocation"]
        return _ALLOCATE_AGAIN_S if is_waiting else None

    def _next(self, job: Json, status: Json, pods: Sequence[Json]) -> Json:
        """Return the fields of the status after this step."""
        phase = status.get("phase") or "Pending"
        if phase in _ENDED:
            return {}
        end = adaptdl_pods.completion(pods, is_preemptible=job["spec"].get("preemptible", True))
        if end:
            self._delete([pod for pod in pods if pod["status"].get("phase") != "Failed"])
            return {**end, "completionTimestamp": stamp(time.time()), "replicas": None, "readyReplicas": None}
        allocation = self._allocation(job, status)
        changed: Json = {"allocation": allocation or None, **self._phase(job, phase, allocation, pods)}
        changed["replicas"] = len(allocation) or None
        changed["readyReplicas"] = adaptdl_pods.ready(pods) if allocation else None
        return changed

    def _phase(self, job: Json, phase: str, allocation: Sequence[str], pods: Sequence[Json]) -> Json:
        is_other = adaptdl_pods.are_others(pods, allocation)
        if phase == "Pending":
            return {"phase": "Starting" if allocation and not pods else "Pending"}
        if phase == "Stopping":
            self._delete(pods)
            return {"phase": "Stopping" if pods else "Pending"}
        if phase == "Running":
            return {"phase": "Stopping" if is_other or not pods else "Running"}
        if not allocation or (is_other and not adaptdl_pods.all_scheduled(pods, allocation)):
            return {"phase": "Stopping"}
        if not pods:
            return self._begin_group(job, allocation)
        is_up = adaptdl_pods.ready(pods) == len(allocation)
        return {"phase": "Running" if is_up else "Starting"}

    def _begin_group(self, job: Json, allocation: Sequence[str]) -> Json:
        group = (job.get("status") or {}).get("group", -1) + 1
        made = []
        try:
            for rank in range(len(allocation)):
                node = self._store.get(NODES, "", allocation[rank])
                pod = adaptdl_pods.pod_of(job, node, list(allocation), group, rank)
                made.append(self._store.create(PODS, job["metadata"]["namespace"], pod))
        except ApiError as error:
            self._delete(made)
            message = error.message
            return {"phase": "Failed", "reason": "PodCreationError", "message": message, "group": group}
        return {"phase": "Starting", "group": group}

    def _allocation(self, job: Json, status: Json) -> list[str]:
        """Return the nodes of the replicas: as they are, or as the hints that are new allow."""
        uid = job["metadata"]["uid"]
        hints = status.get("train") or {}
        given: list[str] = list(status.get("allocation") or [])
        if given and self._hints.setdefault(uid, copy.deepcopy(hints)) == hints:
            return given
        found = adaptdl_pods.nodes_with_room(self._store, job, _replicas(job["spec"], hints))
        if found:
            self._hints[uid] = copy.deepcopy(hints)
        return found if len(found) > len(given) else given

    def _delete(self, pods: Iterable[Json]) -> None:
        for pod in pods:
            if pod["metadata"].get("deletionTimestamp"):
                continue
            try:
                self._store.delete(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
            except ApiError as error:
                if error.code != 404:
                    raise


def _replicas(spec: Json, hints: Json) -> int:
    """One, or the least number, until hints say how many were profiled: then up to twice as many."""
    most = max(2 * hints.get("maxProfiledReplicas", 0), 1)
    if spec.get("maxReplicas"):
        most = min(most, spec["maxReplicas"])
    return int(max(most, spec.get("minReplicas", 0)))
