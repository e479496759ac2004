"""A small Kueue: an object with a queue's label is suspended until the queue has room for all of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from decimal import Decimal

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.ownership import owner_reference
from tests.labs.kubernetes.controllers.recorder import EventRecorder
from tests.labs.kubernetes.controllers.times import with_condition
from tests.labs.kubernetes.nodes.quantities import pod_requests
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore
from tests.labs.kubernetes.validation.quantities import amount

_GROUP = "kueue.x-k8s.io"
LABEL = f"{_GROUP}/queue-name"
LOCAL_QUEUES = Resource(_GROUP, "v1beta1", "localqueues", "LocalQueue")
CLUSTER_QUEUES = Resource(_GROUP, "v1beta1", "clusterqueues", "ClusterQueue", False)
WORKLOADS = Resource(_GROUP, "v1beta1", "workloads", "Workload")
_KINDS = ("Job", "TrainJob", "PyTorchJob", "TFJob", "MPIJob", "PaddleJob", "JobSet")
_ALL: Key = ("", "all")
_FINAL = ("Complete", "Completed", "Failed", "Succeeded")


def _place_of_suspend(kind: str) -> tuple[str, ...]:
    return ("spec",) if kind in ("Job", "TrainJob", "JobSet") else ("spec", "runPolicy")


def _is_suspended(found: Json) -> bool:
    place: Json = found
    for part in _place_of_suspend(found["kind"]):
        place = place.get(part) or {}
    return bool(place.get("suspend"))


def _is_queued(found: Json) -> bool:
    return found["kind"] in _KINDS and LABEL in (found["metadata"].get("labels") or {})


class KueueAdmission:
    """Kueue's webhook: what has a queue is suspended from its beginning."""

    def admit(self, resource: Resource, found: Json, previous: Json | None, subresource: str) -> None:
        """Suspend what is made."""
        if previous is None and not subresource and resource.kind in _KINDS and _is_queued(found):
            place: Json = found
            for part in _place_of_suspend(resource.kind):
                place = place.setdefault(part, {})
            place["suspend"] = True


def install(store: ObjectStore) -> None:
    """Serve Kueue's kinds, and suspend what has a queue."""
    for resource in (LOCAL_QUEUES, CLUSTER_QUEUES, WORKLOADS):
        store.resources.add(resource)
    if not any(isinstance(item, KueueAdmission) for item in store.admission):
        store.admission.insert(0, KueueAdmission())


def make_queue(store: ObjectStore, namespace: str, name: str, quota: dict[str, str]) -> None:
    """Make a LocalQueue and the ClusterQueue of the same name behind it."""
    resources = [{"name": kind, "nominalQuota": value} for kind, value in quota.items()]
    flavors = [{"name": "default-flavor", "resources": resources}]
    groups = [{"coveredResources": list(quota), "flavors": flavors}]
    body: Json = {"metadata": {"name": name}, "spec": {"resourceGroups": groups, "namespaceSelector": {}}}
    store.create(CLUSTER_QUEUES, "", body)
    store.create(LOCAL_QUEUES, namespace, {"metadata": {"name": name}, "spec": {"clusterQueue": name}})


class KueueController:
    """Admits what fits into the quota of its queue, the oldest first."""

    def __init__(self, store: ObjectStore, loop: ControlLoop) -> None:
        self._store = store
        self._loop = loop
        self._events = EventRecorder(store, "kueue-admission")

    @property
    def watches(self) -> Sequence[Resource]:
        """All kinds that may be queued, and the queues."""
        kinds = [resource for resource in self._store.resources if resource.kind in _KINDS]
        return [*kinds, LOCAL_QUEUES, CLUSTER_QUEUES]

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """One key for all: every change may make room."""
        if resource.kind in ("LocalQueue", "ClusterQueue") or _is_queued(found):
            yield _ALL

    def reconcile(self, key: Key) -> float | None:
        """Admit what can be."""
        del key
        kinds = [resource for resource in self._store.resources if resource.kind in _KINDS]
        found = [(kind, item) for kind in kinds for item in self._loop.objects(kind) if _is_queued(item)]
        open_ones = [entry for entry in found if not _is_final(entry[1])]
        open_ones.sort(key=lambda entry: (entry[1]["metadata"]["creationTimestamp"], entry[1]["metadata"]["uid"]))
        used: dict[str, dict[str, Decimal]] = {}
        for _, item in open_ones:
            if not _is_suspended(item):
                self._take(used, item)
        for resource, item in open_ones:
            if _is_suspended(item) and "deletionTimestamp" not in item["metadata"]:
                self._consider(used, resource, item)
        return None

    def _queue_of(self, item: Json) -> Json | None:
        metadata = item["metadata"]
        local = self._loop.find(LOCAL_QUEUES, (metadata["namespace"], metadata["labels"][LABEL]))
        return local and self._loop.find(CLUSTER_QUEUES, ("", local["spec"]["clusterQueue"]))

    def _take(self, used: dict[str, dict[str, Decimal]], item: Json) -> None:
        queue = self._queue_of(item)
        if queue is not None:
            taken = used.setdefault(queue["metadata"]["name"], {})
            for name, value in requests_of(item).items():
                taken[name] = taken.get(name, Decimal(0)) + value

    def _consider(self, used: dict[str, dict[str, Decimal]], resource: Resource, item: Json) -> None:
        workload = self._workload(item)
        queue = self._queue_of(item)
        if queue is None:
            name = item["metadata"]["labels"][LABEL]
            self._tell(workload, "Inadmissible", f"LocalQueue {name} doesn't exist")
            return
        why = _lacks(queue, used.get(queue["metadata"]["name"], {}), requests_of(item))
        if why:
            self._tell(workload, "Pending", why)
            return
        self._take(used, item)
        self._admit(resource, item, workload, queue["metadata"]["name"])

    def _workload(self, item: Json) -> Json:
        metadata = item["metadata"]
        name = (
            f"{item['kind'].lower()}-{metadata['name']}"[:57]
            + f"-{hashlib.sha256(metadata['uid'].encode()).hexdigest()[:5]}"
        )
        present = self._loop.find(WORKLOADS, (metadata["namespace"], name))
        if present is not None:
            return present
        body: Json = {"metadata": {"name": name, "ownerReferences": [owner_reference(item)]}}
        body["spec"] = {"queueName": metadata["labels"][LABEL], "active": True, "podSets": []}
        made = self._store.create(WORKLOADS, metadata["namespace"], body)
        self._events.record(item, "CreatedWorkload", f"Created Workload: {metadata['namespace']}/{name}")
        return made

    def _conditions(self, workload: Json, *conditions: Json) -> bool:
        present = workload.get("status", {}).get("conditions", [])
        changed = present
        for condition in conditions:
            changed = with_condition(changed, condition, self._store.clock())
        if changed == present:
            return False
        metadata = workload["metadata"]
        status = {"status": {"conditions": changed}}
        self._store.patch(WORKLOADS, metadata["namespace"], metadata["name"], status, subresource="status")
        return True

    def _tell(self, workload: Json, reason: str, message: str) -> None:
        condition = {"type": "QuotaReserved", "status": "False", "reason": reason, "message": message}
        if self._conditions(workload, condition):
            self._events.record(workload, reason, message, "Warning")

    def _admit(self, resource: Resource, item: Json, workload: Json, queue: str) -> None:
        message = f"Quota reserved in ClusterQueue {queue}"
        reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": message}
        admitted = {"type": "Admitted", "status": "True", "reason": "Admitted", "message": "The workload is admitted"}
        self._conditions(workload, reserved, admitted)
        patch: Json = {"suspend": False}
        for part in reversed(_place_of_suspend(item["kind"])):
            patch = {part: patch}
        metadata = item["metadata"]
        self._store.patch(resource, metadata["namespace"], metadata["name"], patch)
        self._events.record(item, "Started", f"Admitted by clusterQueue {queue}")


def _is_final(item: Json) -> bool:
    conditions = item.get("status", {}).get("conditions", ())
    return any(entry["type"] in _FINAL and entry["status"] == "True" for entry in conditions)


def requests_of(item: Json) -> dict[str, Decimal]:
    """Return what all pods of an object request together."""
    total: dict[str, Decimal] = {}
    for count, requests in _pod_sets(item):
        for name, value in requests.items():
            total[name] = total.get(name, Decimal(0)) + value * count
    return total


def _pod_sets(item: Json) -> list[tuple[int, dict[str, Decimal]]]:
    spec = item["spec"]
    if item["kind"] == "Job":
        return [(int(spec.get("parallelism", 1)), pod_requests(spec["template"]))]
    if item["kind"] == "TrainJob":
        trainer = spec.get("trainer") or {}
        resources = {"resources": trainer.get("resourcesPerNode") or {}}
        return [(int(trainer.get("numNodes", 1)), pod_requests({"spec": {"containers": [resources]}}))]
    roles = [value for key, value in spec.items() if key.endswith("ReplicaSpecs")]
    replicas = [replica for role in roles for replica in role.values()]
    return [(int(replica.get("replicas", 1)), pod_requests(replica["template"])) for replica in replicas]


def _lacks(queue: Json, used: dict[str, Decimal], wanted: dict[str, Decimal]) -> str:
    """Why a ClusterQueue has no room, as Kueue says it; "": it has."""
    for group in queue["spec"].get("resourceGroups", ()):
        flavor = group["flavors"][0]
        for resource in flavor["resources"]:
            name = resource["name"]
            more = used.get(name, Decimal(0)) + wanted.get(name, Decimal(0)) - amount(resource["nominalQuota"])
            if more > 0:
                return (
                    f"couldn't assign flavors to pod set main: insufficient unused quota for {name} in flavor "
                    f"{flavor['name']}, {more.normalize():f} more needed"
                )
    return ""
