"""The plain Job, which every cluster has: an indexed one, with a headless Service where there are several nodes.

With `reuse` long-running pods run trials one after another: images are pulled and data is loaded once. Such a trial is
a Job that is made suspended and never resumed: it keeps what the trial is. A *pool* is the trials with equal pods but
for what is of the trial alone. A *pilot* is a Job whose pod runs the trials of a pool; its pod has the labels of the
trial that it runs.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects import naming, pod_parts, trial_reasons
from jupyter_autotrain.backends.kubernetes.objects import workload as defaults
from jupyter_autotrain.backends.kubernetes.objects.fields import condition, items, part, text
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import json_variable
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    JOBS,
    NodeVariables,
    ObjectType,
    Workload,
    WorkloadRequest,
    WorkloadState,
)
from jupyter_autotrain.backends.kubernetes.workloads.manifests import VOLCANO_GROUP
from jupyter_autotrain.backends.kubernetes.workloads.volumes import without_volume_folders
from jupyter_autotrain.core.spec import TrialSpec

_POD_LABEL = "job-name"  # the older one, which all versions set


class JobWorkload(Workload):
    """Runs a trial as a Job."""

    object_type: ObjectType = JOBS
    node_variables = NodeVariables(rank="JOB_COMPLETION_INDEX", first_address=places.FIRST_ADDRESS_VARIABLE)
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
    has_failed = any(map(_failed_by_itself, pods))
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
    containers = list(map(dict, cast("Sequence[JsonObject]", spec["containers"])))
    variables = list(cast("Sequence[JsonValue]", containers[0].get("env") or []))
    first = f"{request.name}-0.{request.name}"
    containers[0]["env"] = [*variables, {"name": places.FIRST_ADDRESS_VARIABLE, "value": first}]
    return {**request.template, "spec": {**spec, "subdomain": request.name, "containers": containers}}


def _service(request: WorkloadRequest) -> JsonObject:
    spec: JsonObject = {
        "clusterIP": "None", "publishNotReadyAddresses": True, "selector": {_POD_LABEL: request.name}
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Service", "metadata": request.metadata(), "spec": spec}


POOL: Final = "jupyter-autotrain/pool"  # a label of pilots, an annotation of their trials
MOST: Final = "jupyter-autotrain/pool-size"
IDLE_S: Final = "jupyter-autotrain/pool-idle"
_TTL_S = 60


def is_for(trial: TrialSpec, options: JsonObject) -> bool:
    """Return whether a pilot runs a trial: one on several nodes, with secrets or in a queue has its own pod."""
    return bool(options.get("reuse")) and trial.resources.nodes == 1 and not trial.secrets and not options.get("queue")


def as_pooled(job: JsonObject, options: JsonObject) -> JsonObject:
    """Return the Job of a trial that a pilot runs.

    Args:
        job: The Job that would run it itself.
        options: Of the profile and the header's section.
    """
    spec = part(job, "spec")
    metadata = part(job, "metadata")
    pilot_template = json.dumps(_of_pilot(part(spec, "template"), 0.0), sort_keys=True)
    pool = hashlib.sha256(pilot_template.encode()).hexdigest()[:16]
    own = {POOL: pool, MOST: str(options.get("reuse")), IDLE_S: str(options.get("reuse_idle") or 60.0)}
    named = {**metadata, "annotations": {**part(metadata, "annotations"), **own}}
    return {**job, "metadata": named, "spec": {**spec, "suspend": True}}


def pool_of(found: JsonObject) -> str:
    """Return the pool of a trial's Job; "" where it runs by itself."""
    return text(found, "metadata", "annotations", POOL)


def most_pilots(found: JsonObject) -> int:
    """Return how many pilots the pool of a trial's Job may have."""
    return int(text(found, "metadata", "annotations", MOST) or "1")


def pilot(job: JsonObject, name: str, home: str) -> JsonObject:
    """Return the Job of a pilot.

    Args:
        job: That of a trial of the pool, whole.
        name: Of the pilot.
        home: The identity of the home.
    """
    labels = {
        naming.MANAGED_BY: naming.MANAGER, naming.LABEL_HOME: home, naming.LABEL_JOB: name, POOL: pool_of(job)
    }  # fmt: skip
    template = _of_pilot(part(job, "spec", "template"), float(text(job, "metadata", "annotations", IDLE_S)))
    shared = template["metadata"]
    template["metadata"] = {**shared, "labels": {**shared["labels"], **labels}}
    metadata = {**template["metadata"], "name": name, "namespace": text(job, "metadata", "namespace")}
    spec = {"backoffLimit": 0, "ttlSecondsAfterFinished": _TTL_S, "template": template}
    return cast("JsonObject", {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def trial_text(job: JsonObject) -> str:
    """`trial.json` of a trial's Job; "" where a ConfigMap holds it."""
    for variable in _variables(part(job, "spec", "template")):
        if variable.get("name") == places.TRIAL_VARIABLE:
            return str(variable.get("value"))
    return ""


def config_maps(job: JsonObject) -> dict[str, str]:
    """Return the ConfigMap of each file that a pilot does not have already."""
    found = {}
    for volume in items(job, "spec", "template", "spec", "volumes"):
        for source in items(volume, "projected", "sources"):
            for item in items(source, "configMap", "items"):
                found[text(item, "path")] = text(source, "configMap", "name")
    return {file: name for file, name in found.items() if file and file != places.AGENT_ARCHIVE}


def state(pods: Sequence[JsonObject]) -> WorkloadState:
    """Return the state of a trial that a pilot runs; its pods are that of the pilot, or none."""
    if not pods:
        return WorkloadState(TrialState.PREPARING, "waits for its turn in a long-running pod")
    if any(map(pod_parts.is_alive, pods)):
        return WorkloadState(TrialState.RUNNING)
    lost = WorkloadState(TrialState.LOST, "Lost: the long-running pod ended before the trial did.")
    return trial_reasons.ended(pods) or lost


def _of_pilot(template: JsonObject, idle_s: float) -> dict[str, Any]:
    """Return a pod template without what is of one trial alone."""
    made = cast("dict[str, Any]", copy.deepcopy(dict(without_volume_folders(template))))
    made["metadata"] = _shared_metadata(part(made, "metadata"))
    made["spec"].pop("activeDeadlineSeconds", None)
    container = made["spec"]["containers"][0]
    container["env"] = [_variable(one, idle_s) for one in _variables(made) if one.get("name") != places.TRIAL_VARIABLE]
    mounts = container.get("volumeMounts") or []
    container["volumeMounts"] = [one for one in mounts if not str(one["mountPath"]).startswith(f"{places.RUN}/")]
    for volume in made["spec"].get("volumes") or []:
        _keep_agent(volume)
    return made


def _keep_agent(volume: dict[str, Any]) -> None:
    """Leave nothing but the agent in the volume of what is sent."""
    sources = items(volume, "projected", "sources")
    if sources:
        volume["projected"] = {"sources": list(filter(_is_agent, sources))}


def _shared_metadata(metadata: JsonObject) -> JsonObject:
    """Return the labels and annotations of the profile, which all pods have."""
    labels = {name: value for name, value in part(metadata, "labels").items() if name not in naming.LABELS}
    annotations = {name: value for name, value in part(metadata, "annotations").items() if name != VOLCANO_GROUP}
    return {"labels": labels, "annotations": annotations} if annotations else {"labels": labels}


def _variables(template: Mapping[str, Any]) -> list[JsonObject]:
    return items(items(template, "spec", "containers")[0], "env")


def _variable(found: JsonObject, idle_s: float) -> JsonObject:
    if found.get("name") != places.POD_VARIABLE:
        return found
    told = {**json.loads(str(found["value"])), places.REUSE_IDLE: idle_s}
    return {"name": places.POD_VARIABLE, "value": json_variable(told)}


def _is_agent(source: JsonObject) -> bool:
    return any(text(item, "path") == places.AGENT_ARCHIVE for item in items(source, "configMap", "items"))


class PooledJobWorkload(JobWorkload):
    """Keeps what a trial is, and never has pods of its own."""

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """Return the Job, suspended."""
        job, *others = super().render(request)
        return [as_pooled(job, request.options), *others]

    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:  # noqa: ARG002 - it is suspended whatever happens
        """Read it from the long-running pod."""
        return state(pods)
