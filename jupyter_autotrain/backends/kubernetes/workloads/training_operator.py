"""What the kinds of Kubeflow's training operator (`kubeflow.org/v1`) have in common, and MPIJob of its own operator.

Their objects hold a pod template per type of replica, say how they are by conditions, and label their pods alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.backends.kubernetes.objects.fields import condition, part, text
from jupyter_autotrain.backends.kubernetes.objects.object_names import dns_label
from jupyter_autotrain.backends.kubernetes.objects.pod_containers import (
    label_variable,
    value_variable,
    with_main_container,
    without,
)
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    FIRST_ADDRESS_VARIABLE,
    RANK_VARIABLE,
    VOLCANO,
    NodeVariables,
    ObjectType,
    WorkloadRequest,
    WorkloadState,
)
from jupyter_autotrain.backends.kubernetes.reasons import start_reasons, trial_reasons
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.states import TrialState

GROUP = "kubeflow.org"
_LABELS = "training.kubeflow.org"
INDEX_LABEL = f"{_LABELS}/replica-index"
LONGEST_NAME = 50  # the longest name of a pod and of its Service, NAME-worker-9999, has 63 characters at most


def pod_selector(name: str) -> str:
    """The label selector of the pods of an object."""
    return f"{_LABELS}/job-name={name}"


def replicas(
    template: JsonObject, container: str, count: int, restart_policy: str, env: Sequence[JsonObject] = ()
) -> JsonObject:
    """The replicas of one type.

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
    """The variable that holds which of the replicas of its type a pod is."""
    return label_variable(RANK_VARIABLE, INDEX_LABEL)


def run_policy(request: WorkloadRequest, backoff_limit: int | None = None) -> JsonObject:
    """When the operator ends and removes an object, and how its pods are scheduled together."""
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
    """For an operator that makes the PodGroup itself; ignored by one that does not."""
    policy: dict[str, JsonValue] = {"minAvailable": min(request.nodes, request.min_nodes)}
    for name, option in (("queue", "queue"), ("priorityClass", "priority_class")):
        value = request.options.get(option)
        if value:
            policy[name] = value
    return policy


def job(object_type: ObjectType, request: WorkloadRequest, spec: JsonObject) -> JsonObject:
    """The manifest of an object."""
    kind = object_type.kind
    return {"apiVersion": object_type.api_version, "kind": kind, "metadata": request.metadata(), "spec": spec}


def state(found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
    """The state of a trial by the conditions of its object; the pods tell the reasons."""
    if failed := condition(found, "Failed"):
        return _failed(found, pods, text(failed, "message"))
    if condition(found, "Succeeded"):
        return WorkloadState(TrialState.SUCCEEDED)
    if condition(found, "Restarting"):
        return WorkloadState(TrialState.RUNNING, "goes on without a lost node, which is made again")
    if condition(found, "Running"):
        return WorkloadState(TrialState.RUNNING)
    return start_reasons.preparing(pods, (), found, "waits for its pods")


def _failed(found: JsonObject, pods: Sequence[JsonObject], message: str) -> WorkloadState:
    if "longer than specified deadline" in message or condition(found, "Failed").get("reason") == "DeadlineExceeded":
        told = trial_reasons.deadline(found, "spec", "runPolicy", "activeDeadlineSeconds")
        return WorkloadState(TrialState.FAILED, told)
    kind = text(found, "kind") or "The operator"
    told = f"{kind} says it failed: {message or 'it gives no reason'}"
    return trial_reasons.ended(pods) or WorkloadState(TrialState.FAILED, told)


class WorkersJob:
    """A kind whose replicas are all workers; worker 0 is node 0.

    Args:
        object_type: The kind.
        container: The name that the operator wants the main container to have.
        replicas_field: Where its spec has the types of replicas.
    """

    node_variables = NodeVariables(rank=RANK_VARIABLE, first_address=FIRST_ADDRESS_VARIABLE)
    deletes_pods_at_once = False
    rescales = False

    def __init__(self, object_type: ObjectType, container: str, replicas_field: str) -> None:
        self.object_type = object_type
        self._container = container
        self._replicas_field = replicas_field

    def object_name(self, job_id: str, home: str) -> str:
        """A DNS label."""
        return dns_label(job_id, home, LONGEST_NAME)

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """The manifest."""
        first = value_variable(FIRST_ADDRESS_VARIABLE, f"{request.name}-worker-0")  # the operator's Service
        env = [rank_by_label(), first]
        workers = replicas(request.template, self._container, request.nodes, "Never", env)
        spec: JsonObject = {"runPolicy": run_policy(request), self._replicas_field: {"Worker": workers}}
        return [job(self.object_type, request, spec)]

    def pod_selector(self, name: str) -> str:
        """By the operator's label."""
        return pod_selector(name)

    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
        """By its conditions."""
        return state(found, pods)
