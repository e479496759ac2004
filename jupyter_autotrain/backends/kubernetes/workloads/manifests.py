"""The manifests of a trial: what its workload renders, with its queue, and with the user's patch merged last. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.objects import pending_reasons, trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.fields import part, text
from jupyter_autotrain.backends.kubernetes.objects.workload import JOBS, POD_GROUP, VOLCANO, Workload, WorkloadRequest
from jupyter_autotrain.backends.kubernetes.workloads import patching

KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
KUEUE_COUNT = "kueue.x-k8s.io/pod-group-total-count"
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
_KINDS_OF_KUEUE = frozenset({"Job", "TrainJob", "PyTorchJob", "TFJob", "MPIJob", "PaddleJob"})


@dataclass(frozen=True, slots=True)
class Manifests:
    """The objects that are sent for a trial.

    Attributes:
        objects: In the order in which they are made; the first is the trial's own object and owns the others.
        notes: What a reader of them should know, one sentence each.
    """

    objects: tuple[JsonObject, ...]
    notes: tuple[str, ...] = ()


def manifests(workload: Workload, request: WorkloadRequest) -> Manifests:
    """Return the manifests of a trial. Pure.

    Raises:
        BackendError: `patch` cannot be merged, or removes what the trial needs.
    """
    options = request.options
    first, *others = workload.render(_queued(workload, request))
    if request.timeout_s is not None:
        first = _labelled(first, {}, {trial_reasons.TIMEOUT: f"{request.timeout_s:g}"})
    if is_volcano(options):
        others.append(pod_group(request))
    elif queue := options.get("queue"):
        first = _labelled(first, {KUEUE_QUEUE: str(queue)}) if _is_of_kueue(workload) else first
    else:
        first = as_gang(first, request.min_nodes)
    patch = cast("JsonObject", options.get("patch") or {})
    done = patching.patched(first, patch, "patch")
    notes = (f"`patch` replaces {', '.join(done.replaced)}.",) if done.replaced else ()
    return Manifests((done.result, *others), notes)


def as_gang(manifest: JsonObject, nodes: int) -> JsonObject:
    """Return the Job of a trial on several nodes, made suspended; other kinds have a queue that starts them together.

    Args:
        manifest: The object.
        nodes: With how many pods it starts.
    """
    if nodes < 2 or text(manifest, "kind") != JOBS.kind:
        return manifest
    made = _labelled(manifest, {}, {pending_reasons.GANG: str(nodes)})
    return {**made, "spec": {**part(manifest, "spec"), "suspend": True}}


def is_volcano(options: JsonObject) -> bool:
    """Return whether the pods of a trial are a PodGroup of Volcano."""
    return options.get("scheduler") == VOLCANO


def pod_group(request: WorkloadRequest) -> JsonObject:
    """Return the PodGroup of a trial: all of its nodes start, or none."""
    options = request.options
    spec: dict[str, JsonValue] = {"minMember": request.min_nodes}
    for name, option in (("queue", "queue"), ("priorityClassName", "priority_class")):
        if options.get(option):
            spec[name] = options[option]
    kind = POD_GROUP.kind
    return {"apiVersion": POD_GROUP.api_version, "kind": kind, "metadata": request.metadata(), "spec": spec}


def _is_of_kueue(workload: Workload) -> bool:
    return workload.object_type.kind in _KINDS_OF_KUEUE


def _queued(workload: Workload, request: WorkloadRequest) -> WorkloadRequest:
    """Return the request, its pods marked as a group for a queue that looks at pods."""
    options = request.options
    if is_volcano(options):
        return _with_pods(request, {}, {VOLCANO_GROUP: request.name})
    queue = options.get("queue")
    if not queue or _is_of_kueue(workload):
        return request
    if workload.node_variables.count:  # a group has as many pods for ever, and is not admitted with fewer
        return _with_pods(request, {KUEUE_QUEUE: str(queue)}, {})
    labels = {KUEUE_QUEUE: str(queue), KUEUE_GROUP: request.name}
    return _with_pods(request, labels, {KUEUE_COUNT: str(request.nodes)})


def _with_pods(request: WorkloadRequest, labels: Mapping[str, str], annotations: Mapping[str, str]) -> WorkloadRequest:
    return replace(request, template=_labelled(request.template, labels, annotations))


def _labelled(
    found: JsonObject, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> dict[str, JsonValue]:
    metadata = dict(cast("JsonObject", found.get("metadata") or {}))
    for name, more in (("labels", labels), ("annotations", annotations or {})):
        if more:
            metadata[name] = {**cast("JsonObject", metadata.get(name) or {}), **more}
    return {**found, "metadata": metadata}
