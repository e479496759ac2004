"""A small Volcano: the pods of a PodGroup are bound together, or none of them is."""

from __future__ import annotations

from collections.abc import Sequence

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.times import with_condition
from tests.labs.kubernetes.nodes.scheduler import NodeUse, Scheduler
from tests.labs.kubernetes.objects.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

ANNOTATION = "scheduling.k8s.io/group-name"
POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", short_names=("pg",))
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", False, short_names=("q",))


def install(store: ObjectStore) -> None:
    """Serve Volcano's kinds, with its queue `default`."""
    for resource in (POD_GROUPS, QUEUES):
        store.resources.add(resource)
    if not store.list(QUEUES, None)[0]:
        store.create(QUEUES, "", {"metadata": {"name": "default"}, "spec": {"weight": 1}})


class VolcanoScheduler(Scheduler):
    """Binds pods whose `schedulerName` is volcano."""

    watches: Sequence[Resource] = (PODS, NODES, PERSISTENT_VOLUME_CLAIMS, POD_GROUPS)

    def __init__(self, store: ObjectStore, loop: ControlLoop) -> None:
        super().__init__(store, loop, "volcano")

    def reconcile(self, key: Key) -> float | None:
        """Bind the groups that fit as a whole."""
        del key
        for group, pods in self._groups().items():
            self._schedule_group(group, pods)
        for found in self._loop.objects(POD_GROUPS):
            self._write_status(found)
        return None

    def _groups(self) -> dict[Key, list[Json]]:
        """Return the waiting pods, by their PodGroup."""
        found: dict[Key, list[Json]] = {}
        for pod in self.waiting():
            name = (pod["metadata"].get("annotations") or {}).get(ANNOTATION, "")
            found.setdefault((pod["metadata"]["namespace"], name), []).append(pod)
        return found

    def _members(self, group: Json) -> list[Json]:
        metadata = group["metadata"]
        return [
            pod
            for pod in self._loop.objects(PODS)
            if pod["metadata"]["namespace"] == metadata["namespace"]
            and (pod["metadata"].get("annotations") or {}).get(ANNOTATION) == metadata["name"]
        ]

    def _schedule_group(self, key: Key, pods: Sequence[Json]) -> None:
        group = self._loop.find(POD_GROUPS, key)
        if group is None:
            for pod in pods:
                self.schedule(pod, self.uses())
            return
        bound = [pod for pod in self._members(group) if pod["spec"].get("nodeName")]
        wanted = int(group["spec"].get("minMember", 1)) - len(bound)
        placed = self._place(pods)
        if len(placed) < wanted:
            self._refuse_group(group, pods, len(placed))
            return
        for pod, node in placed:
            self.bind(pod, next(use for use in self.uses() if use.node["metadata"]["name"] == node))

    def _place(self, pods: Sequence[Json]) -> list[tuple[Json, str]]:
        """Where each pod would go that has a place when those before it have theirs."""
        uses: list[NodeUse] = self.uses()
        placed = []
        for pod in pods:
            fits = [use for use in uses if not use.misfits(pod)]
            if fits:
                use = min(fits, key=lambda found: found.load)
                use.add(pod)
                placed.append((pod, use.node["metadata"]["name"]))
        return placed

    def _refuse_group(self, group: Json, pods: Sequence[Json], schedulable: int) -> None:
        least = group["spec"].get("minMember", 1)
        ready = f"pod group is not ready, {least} minAvailable, {len(pods)} Pending"
        parts = f"Pending: {len(pods) - schedulable} Unschedulable, {schedulable} Schedulable"
        for pod in pods:
            self.refuse(pod, f"{ready}; {parts}")
        message = f"{len(pods)}/{len(pods)} tasks in gang unschedulable: {ready}; {parts}"
        condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": message}
        conditions = with_condition(group.get("status", {}).get("conditions", ()), condition, self._store.clock())
        self._patch(group, {"phase": "Inqueue", "conditions": conditions})

    def _write_status(self, group: Json) -> None:
        phases = [pod.get("status", {}).get("phase") for pod in self._members(group)]
        running = phases.count("Running")
        phase = group.get("status", {}).get("phase", "Pending")
        if running >= int(group["spec"].get("minMember", 1)):
            phase = "Running"
        elif phases and all(found in ("Succeeded", "Failed") for found in phases):
            phase = "Completed"
        counts = {"running": running, "succeeded": phases.count("Succeeded"), "failed": phases.count("Failed")}
        self._patch(group, {"phase": phase, **{name: count for name, count in counts.items() if count}})

    def _patch(self, group: Json, status: Json) -> None:
        present = group.get("status", {})
        if any(present.get(name) != value for name, value in status.items()):
            metadata = group["metadata"]
            patch = {"status": status}
            self._store.patch(POD_GROUPS, metadata["namespace"], metadata["name"], patch, subresource="status")
