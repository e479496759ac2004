"""PyTorchJob of Kubeflow's training operator."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.backends.kubernetes.objects.object_names import dns_label
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    NodeVariables,
    ObjectType,
    WorkloadRequest,
    WorkloadState,
)
from jupyter_autotrain.backends.kubernetes.workloads import training_operator
from jupyter_autotrain.core.json import JsonObject, JsonValue

PYTORCHJOB = ObjectType(training_operator.GROUP, "v1", "pytorchjobs", "PyTorchJob")
_CONTAINER = "pytorch"
_RESTARTS = 3


class PyTorchJobWorkload:
    """A master, which is node 0 and decides the end of the trial, and a worker per further node."""

    object_type = PYTORCHJOB
    node_variables = NodeVariables(rank="RANK", first_address="MASTER_ADDR")
    deletes_pods_at_once = False
    rescales = False

    def object_name(self, job_id: str, home: str) -> str:
        """A DNS label."""
        return dns_label(job_id, home, training_operator.LONGEST_NAME)

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """The manifest."""
        roles = {"Master": training_operator.replicas(request.template, _CONTAINER, 1, "Never")}
        is_elastic = request.min_nodes < request.nodes
        if request.nodes > 1:
            # A lost worker of an elastic trial is made again; one whose code has failed is not.
            policy = "ExitCode" if is_elastic else "Never"
            workers = training_operator.replicas(request.template, _CONTAINER, request.nodes - 1, policy)
            roles["Worker"] = workers
        spec: dict[str, JsonValue] = {
            "nprocPerNode": str(request.workers_per_node),
            "runPolicy": training_operator.run_policy(request),
            "pytorchReplicaSpecs": roles,
        }
        if is_elastic:
            spec["elasticPolicy"] = _elastic_policy(request)
        return [training_operator.job(self.object_type, request, spec)]

    def pod_selector(self, name: str) -> str:
        """By the operator's label."""
        return training_operator.pod_selector(name)

    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
        """By its conditions."""
        return training_operator.state(found, pods)


def _elastic_policy(request: WorkloadRequest) -> JsonObject:
    return {
        "minReplicas": request.min_nodes,
        "maxReplicas": request.nodes,
        "maxRestarts": _RESTARTS,
        "rdzvBackend": "c10d",
        "rdzvHost": f"{request.name}-master-0",
    }
