"""The plain Job, which every cluster has: an indexed one, with a headless Service where there are several nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects import trial_reasons
from jupyter_autotrain.backends.kubernetes.objects import workload as defaults
from jupyter_autotrain.backends.kubernetes.objects.fields import condition, text
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    JOBS,
    NodeVariables,
    ObjectType,
    Workload,
    WorkloadRequest,
    WorkloadState,
)


class JobWorkload(Workload):
    """Runs a trial as a Job."""

    object_type: ObjectType = JOBS
    node_variables = NodeVariables(rank="JOB_COMPLETION_INDEX", first_address=places.FIRST_ADDRESS_VARIABLE)
    pod_label = "job-name"  # the older label, which all versions set
    longest_name = 57  # pods add a number to it where it is a host name

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """Return the Job, and for several nodes the Service that gives them names."""
        job = self.manifest(request, self._spec(request))
        return [job] if request.nodes == 1 else [job, _service(request)]

    def _spec(self, request: WorkloadRequest) -> JsonObject:
        ttl_s = request.options.get("ttl", defaults.TTL_S)
        return {
            "completionMode": "Indexed", "completions": request.nodes, "parallelism": request.nodes,
            "backoffLimit": 0, "template": _template(request),
            "ttlSecondsAfterFinished": int(ttl_s) if isinstance(ttl_s, (int, float)) else int(defaults.TTL_S),
        }  # fmt: skip

    def hosts(self, name: str, nodes: int) -> Sequence[str]:
        """Return the names that the Service gives."""
        return [f"{name}-{number}.{name}" for number in range(nodes)]

    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
        """Read its conditions; only those that are final say how it ended."""
        if condition(found, "Complete"):
            return WorkloadState(TrialState.SUCCEEDED)
        if failed := condition(found, "Failed"):
            return _failure(found, failed, pods)
        if condition(found, "Suspended") or not any(text(pod, "status", "phase") == "Running" for pod in pods):
            return trial_reasons.preparing(pods, (), found, "waits for the cluster to make its pod")
        return WorkloadState(TrialState.RUNNING)


def _failure(found: JsonObject, failed: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
    if failed.get("reason") == "DeadlineExceeded":
        return WorkloadState(TrialState.FAILED, trial_reasons.deadline(found, "spec", "activeDeadlineSeconds"))
    told = f"Its Job failed ({text(failed, 'reason')}): {text(failed, 'message')}"
    ended = trial_reasons.ended(pods)
    has_failed = any(_failed_by_itself(pod) for pod in pods)
    if ended is not None and (has_failed or ended.state is not TrialState.FAILED):
        return ended
    if has_failed:
        return WorkloadState(TrialState.FAILED, told)
    return WorkloadState(TrialState.PREEMPTED, f"{trial_reasons.DELETED} {told}")


def _failed_by_itself(pod: JsonObject) -> bool:
    """Return whether a pod has failed, and is not one that somebody, or the Job after that, deletes."""
    return text(pod, "status", "phase") == "Failed" and not text(pod, "metadata", "deletionTimestamp")


def _template(request: WorkloadRequest) -> JsonObject:
    """Return the template; pods of several nodes get a host name below the Service, and that of the first of them."""
    if request.nodes == 1:
        return request.template
    spec = dict(cast("JsonObject", request.template["spec"]))
    containers = [dict(one) for one in cast("Sequence[JsonObject]", spec["containers"])]
    variables = list(cast("Sequence[JsonValue]", containers[0].get("env") or []))
    first = f"{request.name}-0.{request.name}"
    containers[0]["env"] = [*variables, {"name": places.FIRST_ADDRESS_VARIABLE, "value": first}]
    return {**request.template, "spec": {**spec, "subdomain": request.name, "containers": containers}}


def _service(request: WorkloadRequest) -> JsonObject:
    spec: JsonObject = {
        "clusterIP": "None", "publishNotReadyAddresses": True, "selector": {JobWorkload.pod_label: request.name}
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Service", "metadata": request.metadata(), "spec": spec}
