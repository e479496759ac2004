"""MPIJob: of the MPI operator (`v2beta1`) and of the training operator (`v1`).

Both want their launcher to start ranks in the workers, by SSH or by `kubectl exec`. Here every pod runs a supervisor
and `mpiexec` reaches the workers through those, as on other places; so an image needs no SSH server. The launcher is
node 0 and decides the end of the trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.access.served import ServedCluster, properties
from jupyter_autotrain.backends.kubernetes.objects.fields import part
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import value_variable, without
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    FIRST_ADDRESS_VARIABLE,
    OFFSET_VARIABLE,
    RANK_VARIABLE,
    NodeVariables,
    ObjectType,
    WorkloadRequest,
)
from jupyter_autotrain.backends.kubernetes.workloads import training_operator

MPIJOB = ObjectType(training_operator.GROUP, "v2beta1", "mpijobs", "MPIJob")
MPIJOB_V1 = ObjectType(training_operator.GROUP, "v1", "mpijobs", "MPIJob")
_CONTAINER = "mpi"
_ROLES: Final = {"v1": "replica-type", "v2beta1": "job-role"}  # the labels that say which pod is the launcher
_PORT = 29500  # a Service has one; names are all that is needed of it


class MPIJobWorkload(training_operator.OperatorWorkload):
    """A launcher, and a worker per further node.

    Args:
        object_type: `MPIJOB` or `MPIJOB_V1`.
        launcher_is_worker: The server knows `runLauncherAsWorker`: the launcher keeps its GPUs, and workers are
            numbered from 1.
    """

    node_variables = NodeVariables(RANK_VARIABLE, FIRST_ADDRESS_VARIABLE, OFFSET_VARIABLE)

    def __init__(self, object_type: ObjectType = MPIJOB, *, launcher_is_worker: bool = True) -> None:
        self.object_type = object_type
        self.launcher_is_worker = launcher_is_worker

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """Return the manifest; where the operator makes no Service for the launcher, that too."""
        specs = {"Launcher": self._launcher(request)}
        if request.nodes > 1:
            specs["Worker"] = self._workers(request)
        spec: dict[str, JsonValue] = {
            "slotsPerWorker": request.workers_per_node,
            "runPolicy": training_operator.run_policy(request, backoff_limit=0),  # its launcher is a Job: 6 tries
            "mpiReplicaSpecs": specs,
        }
        if self._is_named_by_operator:
            spec["runLauncherAsWorker"] = True
        found = self.manifest(request, spec)
        needs_service = request.nodes > 1 and not self._is_named_by_operator
        return [found, self._launcher_service(request)] if needs_service else [found]

    @property
    def _is_named_by_operator(self) -> bool:
        """Return whether the operator's Service has the launcher; that of releases before 0.5 has the workers alone."""
        return self.object_type == MPIJOB and self.launcher_is_worker

    def _launcher(self, request: WorkloadRequest) -> JsonObject:
        env = [value_variable(RANK_VARIABLE, "0"), self._first_address(request)]
        template = request.template
        if self.object_type == MPIJOB_V1:  # its operator's init container asks the API server for the workers
            spec = without(part(template, "spec"), "automountServiceAccountToken")
            template = {**template, "spec": spec}
        return training_operator.replicas(template, _CONTAINER, 1, "Never", env)

    def _workers(self, request: WorkloadRequest) -> JsonObject:
        offset = value_variable(OFFSET_VARIABLE, "0" if self._is_named_by_operator else "1")
        env = [training_operator.rank_by_label(), offset, self._first_address(request)]
        return training_operator.replicas(request.template, _CONTAINER, request.nodes - 1, "Never", env)

    def _first_address(self, request: WorkloadRequest) -> JsonObject:
        """Return the launcher in the operator's Service, else the Service that comes with the object."""
        domain = f".{request.name}" if self._is_named_by_operator else ""
        return value_variable(FIRST_ADDRESS_VARIABLE, f"{request.name}-launcher{domain}")

    def _launcher_service(self, request: WorkloadRequest) -> JsonObject:
        """Return a headless Service that has the launcher alone."""
        role = _ROLES[self.object_type.version]
        selector = {"training.kubeflow.org/job-name": request.name, f"training.kubeflow.org/{role}": "launcher"}
        spec: dict[str, JsonValue] = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
        spec["ports"] = [{"name": "trial", "port": _PORT}]
        metadata = request.metadata(f"{request.name}-launcher")
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def served_mpijob(served: ServedCluster) -> MPIJobWorkload:
    """Return the one of the MPI operator, as this server knows it."""
    fields = properties(served.schema(MPIJOB), "spec")
    return MPIJobWorkload(MPIJOB, launcher_is_worker=not fields or "runLauncherAsWorker" in fields)


def mpijob_v1() -> MPIJobWorkload:
    """Return the one of the training operator."""
    return MPIJobWorkload(MPIJOB_V1, launcher_is_worker=False)
