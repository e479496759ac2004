"""The kubelet of a node: runs the pods that are bound to it, and writes their status."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.times import stamp
from tests.labs.kubernetes.nodes import eviction, quantities
from tests.labs.kubernetes.nodes.allocation import Allocation
from tests.labs.kubernetes.nodes.container_run import ContainerRun
from tests.labs.kubernetes.nodes.pod_run import PodRun
from tests.labs.kubernetes.nodes.runtime.container import NodeSettings
from tests.labs.kubernetes.nodes.runtime_process import RuntimeProcess
from tests.labs.kubernetes.nodes.sandbox import Sandbox
from tests.labs.kubernetes.nodes.starting import ContainerStarter, NodeServices
from tests.labs.kubernetes.nodes.volumes import PodVolumes
from tests.labs.kubernetes.objects.resources import PODS, Resource
from tests.labs.kubernetes.objects.values import Json

_ENDED = ("Succeeded", "Failed")


class Kubelet:
    """A controller of the pods of one node.

    Args:
        services: Of the node.
        loop: That runs it.
        network_pid: A process in the cluster's network.
        settings: Of its runtime.
        allocation: Of its addresses and GPUs.
    """

    watches: Sequence[Resource] = (PODS,)

    def __init__(
        self,
        services: NodeServices,
        loop: ControlLoop,
        network_pid: int,
        settings: NodeSettings,
        allocation: Allocation,
    ) -> None:
        self.services = services
        self.alive = True
        self.failed_at = 0.0
        self._loop = loop
        self._network_pid = network_pid
        self._settings = settings
        self._allocation = allocation
        self._runs: dict[Key, PodRun] = {}
        self._abandoned: list[PodRun] = []
        self._remover = ThreadPoolExecutor(1, f"removing-{services.name}")  # thousands of files, of pods that ended
        self._begin()

    def _begin(self) -> None:
        def heard(event: Json) -> None:
            self._loop.call(lambda: self._happened(event))

        def ended(run_id: str, code: int) -> None:
            heard({"event": "exited", "id": run_id, "code": code, "out_of_memory": False})

        self.runtime = RuntimeProcess(self._network_pid, self._settings, heard)
        self.starter = ContainerStarter(self.services, self.runtime, ended)

    def fail(self) -> None:
        """End the machine: its processes end, and nobody says so."""
        self.alive = False
        self.failed_at = time.monotonic()
        self.runtime.end()

    def recover(self) -> None:
        """Bring the machine back, with an empty memory: what ran there has ended."""
        self._runs.clear()
        self._begin()
        self.alive = True
        for pod in self._loop.objects(PODS):
            for key in self.keys(PODS, pod):
                self._loop.enqueue(self, key)

    def close(self) -> None:
        """End all that runs on it."""
        self.alive = False
        self.runtime.end()
        self._remover.shutdown()

    def run_of(self, pod: Json) -> PodRun | None:
        """Return a pod that is known to the node."""
        found = self._runs.get((pod["metadata"]["namespace"], pod["metadata"]["name"]))
        return found if found and found.uid == pod["metadata"]["uid"] else None

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Pods of this node."""
        if resource.key == PODS.key and found["spec"].get("nodeName") == self.services.name:
            yield found["metadata"]["namespace"], found["metadata"]["name"]

    def reconcile(self, key: Key) -> float | None:
        """Bring the containers of a pod to where they should be, and write its status."""
        if not self.alive:
            return None
        pod = self._loop.find(PODS, key)
        run = self._runs.get(key)
        if run and (pod is None or pod["metadata"]["uid"] != run.uid):
            self._abandon(key, run)
            run = None
        if pod is None or pod["spec"].get("nodeName") != self.services.name:
            return None
        if run is None:
            run = self._arrive(key, pod)
        if run is None:
            return None
        wait = self._watch_disk(pod, run, run.step(pod))
        self._write_status(key, pod, run)
        if run.done:
            self._clean(run)
            self._finish_deletion(key, pod)
        return wait

    def _watch_disk(self, pod: Json, run: PodRun, wait: float | None) -> float | None:
        if run.done or not eviction.is_limited(pod):
            return wait
        message = eviction.message(pod, run)
        if message and not run.reason:
            run.stop(0.0, "Evicted", message)
            told = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message}
            run.extra_conditions.append(told)
            self.starter.tell(pod, "Evicted", message, "Warning")
            return run.step(pod)
        return eviction.CHECK_S if wait is None else min(wait, eviction.CHECK_S)

    def _arrive(self, key: Key, pod: Json) -> PodRun | None:
        status = pod.get("status", {})
        if status.get("phase") in _ENDED:
            self._finish_deletion(key, pod)
            return None
        if status.get("podIP"):  # from before the node failed
            self._fail_lost(key, pod)
            return None
        volumes = PodVolumes(
            self.services.store, self.services.shared, self.services.folder / "volumes" / pod["metadata"]["uid"],
            f"{self.services.scratch}/memory-{pod['metadata']['uid']}",
        )  # fmt: skip
        runs = list(self._runs.values())
        gpus = self._allocation.gpus(runs, int(quantities.pod_requests(pod).get(self.services.gpu_resource, 0)))
        sandbox = Sandbox(pod["metadata"]["uid"], self._allocation.address(runs), volumes, gpus)
        run = PodRun(pod, sandbox, self.starter)
        self._runs[key] = run
        return run

    def _fail_lost(self, key: Key, pod: Json) -> None:
        status = {
            "phase": "Failed",
            "reason": "NodeShutdown",
            "message": "Pod was terminated in response to imminent node shutdown.",
        }
        self.services.store.patch(PODS, *key, {"status": status}, subresource="status")
        self._finish_deletion(key, pod)

    def _write_status(self, key: Key, pod: Json, run: PodRun) -> None:
        status = run.status(pod, self.services.address)
        present = pod.get("status", {})
        if any(present.get(name) != value for name, value in status.items()):
            self.services.store.patch(PODS, *key, {"status": status}, subresource="status")

    def _finish_deletion(self, key: Key, pod: Json) -> None:
        if pod["metadata"].get("deletionTimestamp"):
            self.services.store.delete(PODS, *key, grace_s=0, uid=pod["metadata"]["uid"])

    def _abandon(self, key: Key, run: PodRun) -> None:
        """Stop all that goes on of an object that is gone."""
        del self._runs[key]
        run.stop(0.0)
        for container in run.runs:
            self.runtime.signal(container.run_id, signal.SIGKILL)
        self._abandoned.append(run)
        self._clear_abandoned()

    def _clear_abandoned(self) -> None:
        for run in [found for found in self._abandoned if not found.is_live]:
            self._abandoned.remove(run)
            self._clean(run)
            for part in ("logs", "system") if self.alive else ():
                self._remover.submit(shutil.rmtree, self.services.folder / part / run.uid, ignore_errors=True)

    def _clean(self, run: PodRun) -> None:
        self.runtime.remove_network(run.uid)
        self.runtime.forget(f"memory-{run.uid}")
        if self.alive:
            self._remover.submit(run.sandbox.volumes.remove)
        run.sandbox.gpus = []

    def _happened(self, event: Json) -> None:
        """Something happened to a container; called in the loop's thread."""
        if event["event"] == "ended" and self.alive:
            raise RuntimeError(f"The runtime of node {self.services.name} has ended.")
        found = self._find(event.get("id", ""))
        if found is None:
            return
        key, pod_run, run = found
        if event["event"] == "started":
            run.runtime_pid = event["pid"]
            run.state = {"running": {"startedAt": stamp(self.starter.clock())}}
            self._tell_started(key)
        elif event["event"] == "failed":
            self._failed_to_start(pod_run, run, event["message"])
        elif event["event"] == "exited":
            self._exited(pod_run, run, event)
        elif event["event"] == "storage":
            run.written_bytes = event["bytes"]
        if key is None:
            self._clear_abandoned()
        else:
            self._loop.enqueue(self, key)

    def _tell_started(self, key: Key | None) -> None:
        pod = self._loop.find(PODS, key) if key else None
        if pod is not None:
            self.starter.tell(pod, "Created", "Container created")
            self.starter.tell(pod, "Started", "Container started")

    def _find(self, run_id: str) -> tuple[Key | None, PodRun, ContainerRun] | None:
        candidates: list[tuple[Key | None, PodRun]] = [*self._runs.items()]
        candidates += [(None, run) for run in self._abandoned]
        for key, pod_run in candidates:
            if run_id.startswith(pod_run.uid):
                for run in pod_run.runs:
                    if run.run_id == run_id:
                        return key, pod_run, run
        return None

    def _failed_to_start(self, pod_run: PodRun, run: ContainerRun, message: str) -> None:
        self.runtime.forget(run.run_id)
        pod_run.ended(run, 128, "StartError", run.start_failure(message))

    def _exited(self, pod_run: PodRun, run: ContainerRun, event: Json) -> None:
        code = event["code"] if event["code"] >= 0 else 128 - event["code"]
        reason = "Completed" if code == 0 else "Error"
        if event["out_of_memory"]:
            reason = "OOMKilled"
        self.runtime.forget(run.run_id)
        pod_run.ended(run, code, reason, self.starter.message_of(run, pod_run.sandbox, code))

    def log_path(self, run: ContainerRun, *, previous: bool) -> Path | None:
        """Return the log of a container's present or last run, or of the one before."""
        path = run.previous_log if previous else run.log
        return Path(path) if path and Path(path).exists() else None
