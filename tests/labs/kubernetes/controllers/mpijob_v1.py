"""MPIJob of the training operator (`v1`): launcher and workers are pods, and `kubectl exec` is to reach the workers.

Known differences: the init container that brings kubectl does nothing; service account and roles are not made.
"""

from __future__ import annotations

from tests.labs.kubernetes.controllers.kubeflow_status import counted
from tests.labs.kubernetes.controllers.loop import ControlLoop
from tests.labs.kubernetes.controllers.operator_base import TrainingOperatorController
from tests.labs.kubernetes.controllers.times import stamp
from tests.labs.kubernetes.custom.training_operator import MPIJOBS_V1
from tests.labs.kubernetes.objects.metadata import copied
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, PODS
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_LABELS = "training.kubeflow.org"


class MPIJobV1Controller(TrainingOperatorController):
    """The training operator's controller."""

    def __init__(self, store: ObjectStore, loop: ControlLoop) -> None:
        super().__init__(store, loop, MPIJOBS_V1, (PODS, CONFIG_MAPS), "mpijob-controller")

    def _run(self, job: Json, status: Json) -> None:
        name = job["metadata"]["name"]
        data = {"kubexec.sh": "#!/bin/sh\n", "hostfile": _hostfile(job), "discover_hosts.sh": "#!/bin/sh\n"}
        self.make(CONFIG_MAPS, job, {"metadata": {"name": f"{name}-config", "labels": {"app": name}}, "data": data})
        count = job["spec"]["mpiReplicaSpecs"].get("Worker", {"replicas": 0}).get("replicas", 1)
        workers = [self.make(PODS, job, self._pod(job, "Worker", index)) for index in range(count)]
        launcher = self.make(PODS, job, self._pod(job, "Launcher", 0))
        self._tell(job, status, launcher, workers)

    def _pod(self, job: Json, role: str, index: int) -> Json:
        name = job["metadata"]["name"]
        spec = job["spec"]["mpiReplicaSpecs"][role]
        template = copied(spec["template"])
        given = template.get("metadata") or {}
        labels = {
            **(given.get("labels") or {}),
            f"{_LABELS}/operator-name": "mpijob-controller",
            f"{_LABELS}/job-name": name,
            f"{_LABELS}/replica-type": role.lower(),
        }
        pod = template["spec"]
        pod["restartPolicy"] = (
            "Never" if spec.get("restartPolicy") == "ExitCode" else spec.get("restartPolicy", "Never")
        )
        container = pod["containers"][0]
        config = {"name": "mpi-job-config", "configMap": {"name": f"{name}-config", "defaultMode": 0o555}}
        pod["volumes"] = [*pod.get("volumes", ()), config]
        mount = {"name": "mpi-job-config", "mountPath": "/etc/mpi"}
        container["volumeMounts"] = [*container.get("volumeMounts", ()), mount]
        if role == "Worker":
            labels[f"{_LABELS}/replica-index"] = str(index)
            if "command" not in container:
                container["command"] = ["sleep"]
                container["args"] = ["365d"]
        else:
            labels[f"{_LABELS}/job-role"] = "master"
            _complete_launcher(pod, container)
        own = f"{name}-worker-{index}" if role == "Worker" else f"{name}-launcher"
        return {"metadata": {"name": own, "labels": labels, "annotations": given.get("annotations") or {}}, "spec": pod}

    def _tell(self, job: Json, status: Json, launcher: Json, workers: list[Json]) -> None:
        name = job["metadata"]["name"]
        statuses = {"Launcher": counted([launcher], ""), "Worker": counted(workers, "")}
        status["replicaStatuses"] = statuses
        if statuses["Launcher"].get("succeeded"):
            status.setdefault("completionTime", stamp(self.now))
            self.condition(job, status, "Succeeded", f"MPIJob {name} is successfully completed.")
            return
        if statuses["Launcher"].get("active"):
            self.condition(job, status, "Running", f"MPIJob {name} is running.")
        for role, counts in statuses.items():
            if counts.get("failed"):
                status.setdefault("completionTime", stamp(self.now))
                message = f"MPIJob {name} is failed because {counts['failed']} {role} replica(s) failed."
                self.condition(job, status, "Failed", message)


def _complete_launcher(pod: Json, container: Json) -> None:
    """Add what the operator adds for Open MPI and Intel MPI."""
    needs = {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"cpu": "100m", "memory": "512Mi"}}
    deliver = {"name": "kubectl-delivery", "image": "kubeflow/kubectl-delivery:latest", "resources": needs}
    pod["initContainers"] = [*pod.get("initContainers", ()), {**deliver, "command": ["true"]}]
    values = {
        "OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "I_MPI_HYDRA_BOOTSTRAP": "rsh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/etc/mpi/kubexec.sh",
    }
    more = [{"name": name, "value": value} for name, value in values.items()]
    container["env"] = [*container.get("env", ()), *more]


def _hostfile(job: Json) -> str:
    name = job["metadata"]["name"]
    count = job["spec"]["mpiReplicaSpecs"].get("Worker", {"replicas": 0}).get("replicas", 1)
    slots = job["spec"].get("slotsPerWorker", 1)
    return "".join(f"{name}-worker-{index} slots={slots}\n" for index in range(count))
