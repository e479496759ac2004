"""The scheduler: which pod runs on which node, and who has to make room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.recorder import EventRecorder
from tests.labs.kubernetes.controllers.times import condition_of, with_condition
from tests.labs.kubernetes.nodes import fitting, quantities
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore
from tests.labs.kubernetes.validation.quantities import amount

_ALL: Key = ("", "pending")


class NodeUse:
    """Requests of the pods of a node."""

    def __init__(self, node: Json, pods: Iterable[Json]) -> None:
        self.node = node
        self.pods = [pod for pod in pods if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
        self.used = quantities.used(self.pods)

    def misfits(self, pod: Json) -> list[str]:
        """Why a pod cannot run here."""
        return fitting.misfits(pod, self.node, self.used, len(self.pods))

    def is_short(self, pod: Json) -> bool:
        """Return whether a pod may run here, and there is only too little of something."""
        return all(reason.startswith(("Insufficient", "Too many")) for reason in self.misfits(pod))

    def fits_when_empty(self, pod: Json) -> bool:
        """Return whether a pod could run here if no other did."""
        return not fitting.lacking(pod, self.node, {}, 0)

    def add(self, pod: Json) -> None:
        """One more runs here."""
        self.pods.append(pod)
        for name, wanted in quantities.pod_requests(pod).items():
            self.used[name] = self.used.get(name, Decimal(0)) + wanted

    def victims(self, pod: Json) -> list[Json] | None:
        """Return the pods of lower priority that have to go for one to run here; None: that would not be enough."""
        if not self.is_short(pod):
            return None
        priority = pod["spec"].get("priority", 0)
        lower = [found for found in self.pods if found["spec"].get("priority", 0) < priority]
        lower.sort(key=lambda found: (found["spec"].get("priority", 0), found["metadata"]["creationTimestamp"]))
        for count in range(1, len(lower) + 1):
            left = [found for found in self.pods if found not in lower[:count]]
            if not fitting.lacking(pod, self.node, quantities.used(left), len(left)):
                return lower[:count]
        return None

    @property
    def load(self) -> tuple[Decimal, int]:
        """Return how busy it is: the less busy is preferred."""
        allocatable = self.node["status"]["allocatable"]
        share = self.used.get("cpu", Decimal(0)) / max(amount(allocatable["cpu"]), Decimal(1))
        return share, len(self.pods)


class Scheduler:
    """Binds pods to nodes; one pass looks at all that wait.

    Args:
        name: Pods with this `schedulerName` are its own.
    """

    watches: Sequence[Resource] = (PODS, NODES, PERSISTENT_VOLUME_CLAIMS)

    def __init__(self, store: ObjectStore, loop: ControlLoop, name: str = "default-scheduler") -> None:
        self._store = store
        self._loop = loop
        self._name = name
        self._events = EventRecorder(store, name)

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """One key for all: every change may make room."""
        del resource, found
        yield _ALL

    def reconcile(self, key: Key) -> float | None:
        """Bind what can be bound, the most urgent first."""
        del key
        waiting = self.waiting()
        uses = self.uses() if waiting else []
        for pod in waiting:
            self.schedule(pod, uses)
        return None

    def waiting(self) -> list[Json]:
        """Return the pods that have no node yet, the most urgent first."""
        found = [pod for pod in self._loop.objects(PODS) if self._is_waiting(pod)]
        return sorted(found, key=lambda pod: (-pod["spec"].get("priority", 0), pod["metadata"]["creationTimestamp"]))

    def uses(self) -> list[NodeUse]:
        """Return what there is, and what of it is in use."""
        by_node: dict[str, list[Json]] = {}
        for pod in self._loop.objects(PODS):
            by_node.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
        nodes = sorted(self._loop.objects(NODES), key=lambda node: str(node["metadata"]["name"]))
        return [NodeUse(node, by_node.get(node["metadata"]["name"], ())) for node in nodes]

    def _is_waiting(self, pod: Json) -> bool:
        own = pod["spec"].get("schedulerName", "default-scheduler") == self._name
        bound = pod["spec"].get("nodeName")
        return own and not bound and "deletionTimestamp" not in pod["metadata"]

    def schedule(self, pod: Json, uses: Sequence[NodeUse]) -> None:
        """Bind a pod, or say why it waits."""
        if pod["spec"].get("schedulingGates"):
            text = "Scheduling is blocked due to non-empty scheduling gates"
            self._set_condition(pod, {"status": "False", "reason": "SchedulingGated", "message": text})
            return
        unbound = self._unbound_claim(pod)
        if unbound:
            self.refuse(pod, f"0/{len(uses)} nodes are available: {unbound}. not found")
            return
        fits = [use for use in uses if not use.misfits(pod)]
        if fits:
            self.bind(pod, min(fits, key=lambda use: use.load))
            return
        preemption = self._preempt(pod, uses)
        self.refuse(pod, fitting.unschedulable_message([use.misfits(pod) for use in uses], preemption))

    def _unbound_claim(self, pod: Json) -> str:
        for volume in pod["spec"].get("volumes", ()):
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if not name:
                continue
            claim = self._loop.find(PERSISTENT_VOLUME_CLAIMS, (pod["metadata"]["namespace"], name))
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if claim.get("status", {}).get("phase") != "Bound":
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def bind(self, pod: Json, use: NodeUse) -> None:
        """Have a pod run on a node."""
        metadata = pod["metadata"]
        node = use.node["metadata"]["name"]
        patch = {"spec": {"nodeName": node}}
        self._store.patch(PODS, metadata["namespace"], metadata["name"], patch, subresource="binding")
        use.add(pod)
        self._set_condition(pod, {"status": "True"})
        message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node}"
        self._events.record(pod, "Scheduled", message)

    def refuse(self, pod: Json, message: str) -> None:
        """Say why a pod waits."""
        if self._set_condition(pod, {"status": "False", "reason": "Unschedulable", "message": message}):
            self._events.record(pod, "FailedScheduling", message, "Warning")

    def _set_condition(self, pod: Json, condition: Json) -> bool:
        wanted = {"type": "PodScheduled", **condition}
        present = condition_of(pod, "PodScheduled") or {}
        if all(present.get(name) == wanted.get(name) for name in ("status", "reason", "message")):
            return False
        conditions = with_condition(pod.get("status", {}).get("conditions", ()), wanted, self._store.clock())
        metadata = pod["metadata"]
        status = {"phase": "Pending", "conditions": conditions}
        self._store.patch(PODS, metadata["namespace"], metadata["name"], {"status": status}, subresource="status")
        return True

    def _preempt(self, pod: Json, uses: Sequence[NodeUse]) -> str:
        count = len(uses)
        if pod["spec"].get("preemptionPolicy") == "Never":
            return "not eligible due to preemptionPolicy=Never."
        found = [(use, use.victims(pod)) for use in uses]
        possible = [(use, victims) for use, victims in found if victims]
        if not possible:
            short = [use for use in uses if use.is_short(pod) and use.fits_when_empty(pod)]
            return _not_helpful(count, len(short))
        use, victims = min(possible, key=lambda item: len(item[1]))
        going = any("deletionTimestamp" in other["metadata"] for other in use.pods)
        for victim in () if going else victims:
            self._evict(victim, pod, use.node["metadata"]["name"])
        metadata = pod["metadata"]
        nominated = {"status": {"nominatedNodeName": use.node["metadata"]["name"]}}
        self._store.patch(PODS, metadata["namespace"], metadata["name"], nominated, subresource="status")
        return _not_helpful(count)

    def _evict(self, victim: Json, pod: Json, node: str) -> None:
        metadata = victim["metadata"]
        text = f"{self._name}: preempting to accommodate a higher priority pod"
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": text}
        conditions = with_condition(victim.get("status", {}).get("conditions", ()), condition, self._store.clock())
        patch = {"status": {"conditions": conditions}}
        try:
            self._store.patch(PODS, metadata["namespace"], metadata["name"], patch, subresource="status")
            self._store.delete(PODS, metadata["namespace"], metadata["name"], uid=metadata["uid"])
        except ApiError:
            return  # it has gone by itself
        self._events.record(victim, "Preempted", f"Preempted by pod {pod['metadata']['uid']} on node {node}")


def _not_helpful(count: int, short: int = 0) -> str:
    parts = [f"{short} No preemption victims found for incoming pod"] if short else []
    if count - short:
        parts.append(f"{count - short} Preemption is not helpful for scheduling")
    return f"0/{count} nodes are available: {', '.join(parts)}."
