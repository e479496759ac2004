"""The kinds of Kubeflow's training operator (`kubeflow.org/v1`), and what MPIJob of its own operator shares with them.

Their objects hold a pod template per type of replica, say how they are by conditions, and label their pods alike.

MPIJob is one of the MPI operator (`v2beta1`) and one of the training operator (`v1`). Both want their launcher to start
ranks in the workers, by SSH or by `kubectl exec`. Here every pod runs a supervisor and `mpiexec` reaches the workers
through those, as on other places; so an image needs no SSH server. The launcher is node 0 and decides the end of the
trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.access.served import ServedCluster, properties
from jupyter_autotrain.backends.kubernetes.objects import trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.fields import condition, part, text
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import (
    label_variable,
    value_variable,
    with_main_container,
    without,
)
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    FIRST_ADDRESS_VARIABLE,
    OFFSET_VARIABLE,
    RANK_VARIABLE,
    VOLCANO,
    NodeVariables,
    ObjectType,
    Workload,
    WorkloadRequest,
    WorkloadState,
)

GROUP = "kubeflow.org"
_LABELS = "training.kubeflow.org"
INDEX_LABEL = f"{_LABELS}/replica-index"


def replicas(
    template: JsonObject, container: str, count: int, restart_policy: str, env: Sequence[JsonObject] = ()
) -> JsonObject:
    """Return the replicas of one type.

    Args:
        template: Their pod template.
        container: The name that the operator wants the main container to have.
        count: How many there are.
        restart_policy: Always, OnFailure, Never, or ExitCode: made again where the exit code is that of a signal.
        env: Variables that are added.
    """
    named = with_main_container(template, {"name": container}, env)
    spec = without(part(named, "spec"), "restartPolicy")  # the one of the replicas counts, and both would be warned of
    return {"replicas": count, "restartPolicy": restart_policy, "template": {**named, "spec": spec}}


def rank_by_label() -> JsonObject:
    """Return the variable that holds which of the replicas of its type a pod is."""
    return label_variable(RANK_VARIABLE, INDEX_LABEL)


def run_policy(request: WorkloadRequest, backoff_limit: int | None = None) -> JsonObject:
    """Say when the operator ends and removes an object, and how its pods are scheduled together."""
    options = request.options
    policy: dict[str, JsonValue] = {"cleanPodPolicy": "None"}  # its logs stay until they are collected
    if backoff_limit is not None:
        policy["backoffLimit"] = backoff_limit
    ttl_s = options.get("ttl")
    if isinstance(ttl_s, int | float):
        policy["ttlSecondsAfterFinished"] = round(ttl_s)
    if options.get("scheduler") == VOLCANO:
        policy["schedulingPolicy"] = _scheduling(request)
    return policy


def _scheduling(request: WorkloadRequest) -> JsonObject:
    """Tell an operator that makes the PodGroup itself; another one ignores it."""
    policy: dict[str, JsonValue] = {"minAvailable": min(request.nodes, request.min_nodes)}
    for name, option in (("queue", "queue"), ("priorityClass", "priority_class")):
        value = request.options.get(option)
        if value:
            policy[name] = value
    return policy


class OperatorWorkload(Workload):
    """A kind of the operator, which labels pods and says how an object is alike for all."""

    longest_name = 50  # the longest name of a pod and of its Service, NAME-worker-9999, has 63 characters at most

    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
        """Return the state of a trial by the conditions of its object; the pods tell the reasons."""
        if failed := condition(found, "Failed"):
            return _failed(found, pods, text(failed, "message"))
        if condition(found, "Succeeded"):
            return WorkloadState(TrialState.SUCCEEDED)
        if condition(found, "Restarting"):
            return WorkloadState(TrialState.RUNNING, "goes on without a lost node, which is made again")
        if condition(found, "Running"):
            return WorkloadState(TrialState.RUNNING)
        return trial_reasons.preparing(pods, (), found, "waits for its pods")


def _failed(found: JsonObject, pods: Sequence[JsonObject], message: str) -> WorkloadState:
    if "longer than specified deadline" in message or condition(found, "Failed").get("reason") == "DeadlineExceeded":
        told = trial_reasons.deadline(found, "spec", "runPolicy", "activeDeadlineSeconds")
        return WorkloadState(TrialState.FAILED, told)
    kind = text(found, "kind") or "The operator"
    told = f"{kind} says it failed: {message or 'it gives no reason'}"
    return trial_reasons.ended(pods) or WorkloadState(TrialState.FAILED, told)


class WorkersJob(OperatorWorkload):
    """A kind whose replicas are all workers; worker 0 is node 0.

    Args:
        object_type: The kind.
        container: The name that the operator wants the main container to have.
        replicas_field: Where its spec has the types of replicas.
    """

    node_variables = NodeVariables(rank=RANK_VARIABLE, first_address=FIRST_ADDRESS_VARIABLE)

    def __init__(self, object_type: ObjectType, container: str, replicas_field: str) -> None:
        self.object_type = object_type
        self._container = container
        self._replicas_field = replicas_field

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """Return the manifest."""
        first = value_variable(FIRST_ADDRESS_VARIABLE, f"{request.name}-worker-0")  # the operator's Service
        env = [rank_by_label(), first]
        workers = replicas(request.template, self._container, request.nodes, "Never", env)
        spec: JsonObject = {"runPolicy": run_policy(request), self._replicas_field: {"Worker": workers}}
        return [self.manifest(request, spec)]


PYTORCHJOB = ObjectType(GROUP, "v1", "pytorchjobs", "PyTorchJob")
_CONTAINER = "pytorch"
_RESTARTS = 3


class PyTorchJobWorkload(OperatorWorkload):
    """A master, which is node 0 and decides the end of the trial, and a worker per further node."""

    object_type = PYTORCHJOB
    node_variables = NodeVariables(rank="RANK", first_address="MASTER_ADDR")

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """Return the manifest."""
        roles = {"Master": replicas(request.template, _CONTAINER, 1, "Never")}
        is_elastic = request.min_nodes < request.nodes
        if request.nodes > 1:
            # A lost worker of an elastic trial is made again; one whose code has failed is not.
            policy = "ExitCode" if is_elastic else "Never"
            workers = replicas(request.template, _CONTAINER, request.nodes - 1, policy)
            roles["Worker"] = workers
        spec: dict[str, JsonValue] = {
            "nprocPerNode": str(request.workers_per_node),
            "runPolicy": run_policy(request),
            "pytorchReplicaSpecs": roles,
        }
        if is_elastic:
            spec["elasticPolicy"] = _elastic_policy(request)
        return [self.manifest(request, spec)]


def _elastic_policy(request: WorkloadRequest) -> JsonObject:
    return {
        "minReplicas": request.min_nodes,
        "maxReplicas": request.nodes,
        "maxRestarts": _RESTARTS,
        "rdzvBackend": "c10d",
        "rdzvHost": f"{request.name}-master-0",
    }


TFJOB = ObjectType(GROUP, "v1", "tfjobs", "TFJob")


def tfjob() -> WorkersJob:
    """Return the workload."""
    return WorkersJob(TFJOB, "tensorflow", "tfReplicaSpecs")


PADDLEJOB = ObjectType(GROUP, "v1", "paddlejobs", "PaddleJob")


def paddlejob() -> WorkersJob:
    """Return the workload; the trial succeeds when all workers have."""
    return WorkersJob(PADDLEJOB, "paddle", "paddleReplicaSpecs")


MPIJOB = ObjectType(GROUP, "v2beta1", "mpijobs", "MPIJob")
MPIJOB_V1 = ObjectType(GROUP, "v1", "mpijobs", "MPIJob")
_MPIJOB_CONTAINER = "mpi"
_ROLES: Final = {"v1": "replica-type", "v2beta1": "job-role"}  # the labels that say which pod is the launcher
_PORT = 29500  # a Service has one; names are all that is needed of it


class MPIJobWorkload(OperatorWorkload):
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
            "runPolicy": run_policy(request, backoff_limit=0),  # its launcher is a Job: 6 tries
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
        return replicas(template, _MPIJOB_CONTAINER, 1, "Never", env)

    def _workers(self, request: WorkloadRequest) -> JsonObject:
        offset = value_variable(OFFSET_VARIABLE, "0" if self._is_named_by_operator else "1")
        env = [rank_by_label(), offset, self._first_address(request)]
        return replicas(request.template, _MPIJOB_CONTAINER, request.nodes - 1, "Never", env)

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
