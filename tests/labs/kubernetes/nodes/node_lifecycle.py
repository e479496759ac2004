"""Notices nodes that are lost, and has their pods made elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.recorder import EventRecorder
from tests.labs.kubernetes.controllers.times import stamp, with_condition
from tests.labs.kubernetes.nodes.fitting import tolerates
from tests.labs.kubernetes.nodes.kubelet import Kubelet
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import NODES, PODS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_TAINT = "node.kubernetes.io/unreachable"
_DEFAULT_TOLERATION_S = 300  # that the API server gives pods; here it means `eviction_s`
_READY = {"status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
_LOST = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
_EVICTED = "Taint manager: deleting due to NoExecute taint"


class NodeLifecycle:
    """A controller of nodes.

    Args:
        grace_s: After how long without a sign a node is lost.
        eviction_s: After how long its pods are deleted, if they do not say another time.
    """

    watches: Sequence[Resource] = (NODES,)

    def __init__(
        self,
        store: ObjectStore,
        loop: ControlLoop,
        kubelets: Mapping[str, Kubelet],
        *,
        grace_s: float,
        eviction_s: float,
    ) -> None:
        self._store = store
        self._loop = loop
        self._kubelets = kubelets
        self._grace_s = grace_s
        self._eviction_s = eviction_s
        self._events = EventRecorder(store, "node-controller")

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Yield the node itself."""
        del resource
        yield "", found["metadata"]["name"]

    def reconcile(self, key: Key) -> float | None:
        """Compare what is known of a node with what it does."""
        node = self._loop.find(NODES, key)
        kubelet = self._kubelets.get(key[1])
        if node is None or kubelet is None:
            return None
        if kubelet.alive:
            self._set(node, _READY, [])
            return None
        silent_s = time.monotonic() - kubelet.failed_at
        if silent_s < self._grace_s:
            return self._grace_s - silent_s
        taints = [{"key": _TAINT, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        self._set(node, _LOST, [taint | {"timeAdded": stamp(self._store.clock())} for taint in taints])
        return self._deal_with_pods(key[1], silent_s - self._grace_s)

    def _set(self, node: Json, ready: Json, taints: list[Json]) -> None:
        name = node["metadata"]["name"]
        conditions = node.get("status", {}).get("conditions", [])
        present = [entry["status"] for entry in conditions if entry["type"] == "Ready"]
        if present == [ready["status"]]:
            return
        changed = with_condition(conditions, {"type": "Ready", **ready}, self._store.clock())
        self._store.patch(NODES, "", name, {"status": {"conditions": changed}}, subresource="status")
        others = [taint for taint in node["spec"].get("taints", ()) if taint["key"] != _TAINT]
        self._store.patch(NODES, "", name, {"spec": {"taints": [*others, *taints]}})
        if taints:
            self._events.record(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")

    def _deal_with_pods(self, node: str, lost_s: float) -> float | None:
        """Say that its pods are not ready, and delete those whose time is over."""
        waits = []
        for pod in self._loop.objects(PODS):
            if pod["spec"].get("nodeName") != node or "deletionTimestamp" in pod["metadata"]:
                continue
            if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                continue
            left = self._tolerated_s(pod) - lost_s
            if left <= 0:
                self._evict(pod)
            else:
                self._mark_not_ready(pod)
                waits.append(left)
        finite = [left for left in waits if left != float("inf")]
        return min(finite, default=None)

    def _tolerated_s(self, pod: Json) -> float:
        taint = {"key": _TAINT, "effect": "NoExecute"}
        found = [entry for entry in pod["spec"].get("tolerations", ()) if tolerates(entry, taint)]
        if not found:
            return self._eviction_s
        seconds = [entry.get("tolerationSeconds", float("inf")) for entry in found]
        return self._eviction_s if min(seconds) == _DEFAULT_TOLERATION_S else float(min(seconds))

    def _conditions(self, pod: Json, condition: Json) -> None:
        present = pod.get("status", {}).get("conditions", ())
        if any(entry["type"] == condition["type"] and entry["status"] == condition["status"] for entry in present):
            return
        changed = with_condition(present, condition, self._store.clock())
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        self._store.patch(PODS, *key, {"status": {"conditions": changed}}, subresource="status")

    def _mark_not_ready(self, pod: Json) -> None:
        self._conditions(pod, {"type": "Ready", "status": "False", "reason": "NodeNotReady"})

    def _evict(self, pod: Json) -> None:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
        metadata = pod["metadata"]
        try:
            self._conditions(pod, condition | {"message": _EVICTED})
            self._store.delete(PODS, metadata["namespace"], metadata["name"], uid=metadata["uid"])
        except ApiError:
            return  # it has gone by itself
        self._events.record(
            pod, "TaintManagerEviction", f"Marking for deletion Pod {metadata['namespace']}/{metadata['name']}"
        )


class PodCleaner:
    """Deletes pods whose node is no longer an object, as nothing else can end them."""

    watches: Sequence[Resource] = (NODES, PODS)

    def __init__(self, store: ObjectStore, loop: ControlLoop) -> None:
        self._store = store
        self._loop = loop

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Return the node."""
        name = found["metadata"]["name"] if resource.key == NODES.key else found["spec"].get("nodeName", "")
        return [("", name)] if name else []

    def reconcile(self, key: Key) -> float | None:
        """Fail and delete the pods of a node that does not exist."""
        if self._loop.find(NODES, key) is not None:
            return None
        for pod in self._loop.objects(PODS):
            if pod["spec"].get("nodeName") == key[1]:
                self._remove(pod)
        return None

    def _remove(self, pod: Json) -> None:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
            condition["message"] = "PodGC: node no longer exists"
            conditions = with_condition(pod.get("status", {}).get("conditions", ()), condition, self._store.clock())
            status = {"phase": "Failed", "conditions": conditions}
            self._store.patch(PODS, *key, {"status": status}, subresource="status")
        if "deletionTimestamp" not in pod["metadata"]:
            self._store.delete(PODS, *key, grace_s=0, uid=pod["metadata"]["uid"])
