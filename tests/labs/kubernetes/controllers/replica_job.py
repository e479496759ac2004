"""The controller of the training operator for PyTorchJob, TFJob and PaddleJob: a pod and a Service per replica."""

from __future__ import annotations

from tests.labs.kubernetes.controllers.job_kinds import JobKind, Replica, replica_specs
from tests.labs.kubernetes.controllers.kubeflow_status import counted
from tests.labs.kubernetes.controllers.loop import ControlLoop
from tests.labs.kubernetes.controllers.operator_base import TrainingOperatorController
from tests.labs.kubernetes.controllers.times import stamp
from tests.labs.kubernetes.objects.metadata import copied
from tests.labs.kubernetes.objects.resources import PODS, SERVICES
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_LABELS = "training.kubeflow.org"
_FIRST_RETRYABLE = 128  # exit codes of signals


class ReplicaJobController(TrainingOperatorController):
    """Makes pods with fixed names, and makes those again that are gone.

    Args:
        kind: What the kind of job has of its own.
    """

    def __init__(self, store: ObjectStore, loop: ControlLoop, kind: JobKind) -> None:
        super().__init__(store, loop, kind.resource, (PODS, SERVICES), "training-operator")
        self._kind = kind

    def _run(self, job: Json, status: Json) -> None:
        pods = self.made(PODS, job)
        for role, spec in replica_specs(self._kind, job).items():
            own = [pod for pod in pods if pod["metadata"]["labels"][f"{_LABELS}/replica-type"] == role.lower()]
            self._replicas(job, status, role, spec, own)
            self._tell(job, status, role, spec, own)

    def _labels(self, job: Json, replica: Replica) -> dict[str, str]:
        return {
            f"{_LABELS}/operator-name": f"{job['kind'].lower()}-controller",
            f"{_LABELS}/job-name": job["metadata"]["name"],
            f"{_LABELS}/replica-type": replica.role.lower(),
            f"{_LABELS}/replica-index": str(replica.index),
        }

    def _replicas(self, job: Json, status: Json, role: str, spec: Json, pods: list[Json]) -> None:
        """Make what is missing, delete what is too much, and what is to be made again."""
        by_index = {int(pod["metadata"]["labels"][f"{_LABELS}/replica-index"]): pod for pod in pods}
        for index in range(spec["replicas"]):
            replica = Replica(job, role, index)
            self.make(SERVICES, job, self._service(replica))
            if index not in by_index:
                self.make(PODS, job, self._pod(replica, spec))
        for index, pod in by_index.items():
            if index >= spec["replicas"]:
                self.delete(PODS, pod)
                service = [
                    one for one in self.made(SERVICES, job) if one["metadata"]["name"] == pod["metadata"]["name"]
                ]
                for one in service:
                    self.delete(SERVICES, one)
            elif pod.get("status", {}).get("phase") == "Failed":
                self._failed_pod(job, status, role, spec, pod)

    def _failed_pod(self, job: Json, status: Json, role: str, spec: Json, pod: Json) -> None:
        policy = spec["restartPolicy"]
        is_retryable = self._exit_code(pod) >= _FIRST_RETRYABLE
        name = job["metadata"]["name"]
        if policy in ("OnFailure", "Always") or (policy == "ExitCode" and is_retryable):
            self.delete(PODS, pod)
            message = f"job {name} is restarting because {role} replica(s) failed."
            self.condition(job, status, "Restarting", message)
        elif policy == "ExitCode":
            message = f'job "{name}" is failing because "{role}" replica(s) failed.'
            status.setdefault("completionTime", stamp(self.now))
            self.condition(job, status, "Failed", message)

    def _exit_code(self, pod: Json) -> int:
        for entry in pod.get("status", {}).get("containerStatuses", ()):
            if entry["name"] == self._kind.container and "terminated" in entry.get("state", {}):
                return int(entry["state"]["terminated"]["exitCode"])
        return 0xBEEF  # a pod that never had the container: as the operator has it

    def _service(self, replica: Replica) -> Json:
        labels = self._labels(replica.job, replica)
        ports = [{"name": self._kind.port_name, "port": self._kind.port}]
        return {
            "metadata": {"name": replica.name, "labels": labels},
            "spec": {"clusterIP": "None", "selector": labels, "ports": ports},
        }

    def _pod(self, replica: Replica, spec: Json) -> Json:
        template = copied(spec["template"])
        pod_spec = template["spec"]
        variables = self._kind.variables(replica)
        for container in pod_spec["containers"]:
            container["env"] = [*container.get("env", ()), *variables]
            if container["name"] == self._kind.container:
                port = {"name": self._kind.port_name, "containerPort": self._kind.port}
                container.setdefault("ports", [port])
        waits = self._kind.init_containers(replica)
        if waits:
            pod_spec["initContainers"] = [*pod_spec.get("initContainers", ()), *waits]
        policy = spec["restartPolicy"]
        pod_spec["restartPolicy"] = "Never" if policy == "ExitCode" else policy
        given = template.get("metadata") or {}
        labels = {**(given.get("labels") or {}), **self._labels(replica.job, replica)}
        if replica.role in ("Master", "Chief"):
            labels[f"{_LABELS}/job-role"] = "master"
        metadata = {"name": replica.name, "labels": labels, "annotations": given.get("annotations") or {}}
        return {"metadata": metadata, "spec": pod_spec}

    def _tell(self, job: Json, status: Json, role: str, spec: Json, pods: list[Json]) -> None:
        """Return the counts of a type of replica, and the conditions that follow from them."""
        name = job["metadata"]["name"]
        kind = job["kind"]
        labels = (f"{_LABELS}/job-name={name}", f"{_LABELS}/replica-type={role.lower()}")
        counts = counted(pods, ",".join(labels))
        status.setdefault("replicaStatuses", {})[role] = counts
        if role == self._kind.deciding_role(job):
            if self._kind.has_succeeded(job, counts, pods):
                status.setdefault("completionTime", stamp(self.now))
                self.condition(job, status, "Succeeded", f"{kind} {name} is successfully completed.")
                return
            if counts.get("active"):
                self.condition(job, status, "Running", f"{kind} {name} is running.")
        failed = counts.get("failed", 0)
        if failed and spec["replicas"] > counts.get("succeeded", 0) + counts.get("active", 0):
            if spec["restartPolicy"] != "Never":
                message = f"{kind} {name} is restarting because {failed} {role} replica(s) failed."
                self.condition(job, status, "Restarting", message)
            else:
                status.setdefault("completionTime", stamp(self.now))
                message = f"{kind} {name} is failed because {failed} {role} replica(s) failed."
                self.condition(job, status, "Failed", message)
