"""What a trial waits for, and why it ended, in a user's words: from its object, its pods and their events. Pure.

Before the end a reason is the rest of a sentence that begins with the trial; afterwards it is whole sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.backends.kubernetes.objects.fields import condition, items, number, part, text
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadState
from jupyter_autotrain.backends.kubernetes.reasons import container_reasons, queue_reasons, scheduling_reasons
from jupyter_autotrain.backends.kubernetes.reasons.container_reasons import short
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.states import TrialState

server_message = queue_reasons.server_message

TIMEOUT = "jupyter-autotrain/timeout"  # an annotation: the limit that the header names, in seconds
_EVICTED = "Evicted: the node ran short of something. {message}"
_DISRUPTIONS = {
    "PreemptionByScheduler": (
        TrialState.PREEMPTED,
        "Preempted: the scheduler gave its place on {node} to a pod of higher priority.",
    ),
    "EvictionByEvictionAPI": (TrialState.PREEMPTED, "Evicted: {node} was drained, or somebody evicted the pod."),
    "DeletionByTaintManager": (TrialState.LOST, "The node {node} was lost: it stopped to answer, or was tainted."),
    "DeletionByPodGC": (TrialState.LOST, "The node {node} was lost: it is no part of the cluster any more."),
    "TerminationByKubelet": (TrialState.PREEMPTED, "Evicted by the node {node}. {message}"),
}
_POD_REASONS = {
    "Evicted": (TrialState.PREEMPTED, _EVICTED),
    "Preempted": _DISRUPTIONS["PreemptionByScheduler"],
    "Preempting": _DISRUPTIONS["PreemptionByScheduler"],
    "NodeLost": (TrialState.LOST, "The node {node} was lost: it stopped to answer."),
    "NodeShutdown": (TrialState.PREEMPTED, "The node {node} was shut down."),
    "Shutdown": (TrialState.PREEMPTED, "The node {node} was shut down."),
    "Terminated": (TrialState.PREEMPTED, "The node {node} was shut down. {message}"),
    "NodeAffinity": (TrialState.PREEMPTED, "The node {node} has no longer the labels that the trial asks for."),
    "UnexpectedAdmissionError": (TrialState.PREEMPTED, "The node {node} refused the pod. {message}"),
    "DeadlineExceeded": (
        TrialState.FAILED,
        "Timeout: the trial ran longer than its limit (`timeout:` in the header). {message}",
    ),
}
_REFUSED_EVENTS = frozenset({"FailedCreate", "FailedCreatePod", "TrainJobResourcesCreationFailed"})
_VOLUME_EVENTS = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume", "ProvisioningFailed"})


def waiting(pods: Sequence[JsonObject], events: Sequence[JsonObject] = (), found: JsonObject | None = None) -> str:
    """What a trial waits for that has not begun; "" when there is nothing to tell.

    Args:
        pods: Its pods, as far as there are any.
        events: Those of its object and its pods; without them a quota and a volume may stay unexplained.
        found: Its object.
    """
    queued = queue_reasons.queued(found, events) if found is not None else ""
    if queued:
        return queued
    for pod in pods:
        told = scheduling_reasons.of_pod(pod) or _with_registry(pod, events) or container_reasons.waiting(pod)
        if told:
            return _counted(told, pods)
    return _from_events(events) or _starting(pods)


def ended(pods: Sequence[JsonObject]) -> WorkloadState | None:
    """How the pods of a trial went badly: the first of them that did; None when none tells."""
    states = map(_of_pod, pods)
    found = [state for state in states if state is not None]
    for state in found:
        if state.state is not TrialState.FAILED:
            return state  # what the cluster did explains what the others say
    return found[0] if found else None


def out_of_memory(pods: Sequence[JsonObject]) -> str:
    """That a container was killed at its memory limit, be it one that was started again; "" where none was."""
    for pod in pods:
        for status in container_reasons.statuses(pod):
            reasons = {text(status, when, "terminated", "reason") for when in ("state", "lastState")}
            if "OOMKilled" in reasons:
                return container_reasons.out_of_memory(pod, text(status, "name"))
    return ""


def restarted(pods: Sequence[JsonObject]) -> str:
    """How a container of a trial went badly that was started again; "" where none was."""
    for pod in pods:
        for status in items(pod, "status", "containerStatuses"):
            ended_as = part(status, "lastState", "terminated")
            if ended_as.get("exitCode"):
                return _of_container(pod, text(status, "name"), ended_as, is_init=False)
    return ""


def deadline(found: JsonObject, *path: str) -> str:
    """The cluster ended the trial at its time limit.

    Args:
        found: Its object.
        path: Where the object says after how many seconds it is ended: that is later than the user's limit.
    """
    limits = [number(found, *path), _seconds(text(found, "metadata", "annotations", TIMEOUT))]
    given = [f"{limit:g}" for limit in sorted(limits) if limit > 0]
    limit = f" of {given[0]} s" if given else ""
    return f"Timeout: the trial ran longer than its limit{limit} (`timeout:` in the header)."


def _seconds(told: str) -> float:
    try:
        return float(told)
    except ValueError:
        return 0.0


def _of_pod(pod: JsonObject) -> WorkloadState | None:
    node = text(pod, "spec", "nodeName") or "its node"
    message = short(text(pod, "status", "message"))
    disruption = condition(pod, "DisruptionTarget")
    known = _DISRUPTIONS.get(text(disruption, "reason")) or _POD_REASONS.get(text(pod, "status", "reason"))
    if known is not None and text(pod, "status", "phase") != "Succeeded":
        told = message or short(text(disruption, "message"))
        return WorkloadState(known[0], known[1].format(node=node, message=told).strip())
    if text(pod, "status", "reason").lower().startswith("outof"):
        return WorkloadState(TrialState.PREEMPTED, f"Another pod took the place on {node} first. {message}".strip())
    if text(pod, "status", "phase") == "Unknown":
        return WorkloadState(TrialState.LOST, f"The node {node} was lost: it stopped to answer.")
    return _of_containers(pod) or _without_container(pod, message)


def _of_containers(pod: JsonObject) -> WorkloadState | None:
    inits = {text(status, "name") for status in items(pod, "status", "initContainerStatuses")}
    for status in container_reasons.statuses(pod):
        ended_as = part(status, "state", "terminated")
        if not ended_as or (number(ended_as, "exitCode") == 0 and text(ended_as, "reason") != "OOMKilled"):
            continue
        name = text(status, "name")
        return WorkloadState(TrialState.FAILED, _of_container(pod, name, ended_as, is_init=name in inits))
    return None


def _of_container(pod: JsonObject, name: str, ended_as: JsonObject, *, is_init: bool) -> str:
    reason = text(ended_as, "reason")
    if reason == "OOMKilled":
        return container_reasons.out_of_memory(pod, name)
    if reason in {"ContainerCannotRun", "StartError"}:
        told = container_reasons.cannot_run(text(ended_as, "message"))
        return f"{told[0].upper()}{told[1:]}."
    told = container_reasons.exit_text(name, ended_as)
    return f"The trial never began: its init container failed. {told}" if is_init else told


def _without_container(pod: JsonObject, message: str) -> WorkloadState | None:
    if text(pod, "status", "phase") != "Failed":
        return None
    reason = text(pod, "status", "reason")
    told = f"{reason}: {message}" if reason and message else reason or message or "the cluster gives no reason"
    return WorkloadState(TrialState.FAILED, f"Its pod failed: {told}.")


def _with_registry(pod: JsonObject, events: Sequence[JsonObject]) -> str:
    """A pull that is backed off tells no more than that; the registry's words are in an earlier event."""
    told = container_reasons.waiting(pod)
    if "its image" not in told or "The registry says" in told:
        return ""
    for event in reversed(events):
        words = text(event, "message")
        if text(event, "reason") == "Failed" and words.startswith("Failed to pull image") and _is_about(event, pod):
            image, _, rest = words.removeprefix("Failed to pull image ").partition(": ")
            return container_reasons.image_pull(image.strip('"'), rest)
    return ""


def _is_about(event: JsonObject, pod: JsonObject) -> bool:
    return text(event, "involvedObject", "name") == text(pod, "metadata", "name")


def _counted(told: str, pods: Sequence[JsonObject]) -> str:
    """Of several pods, how many have begun."""
    begun = sum(1 for pod in pods if text(pod, "status", "phase") in {"Running", "Succeeded"})
    return f"{told}; {begun} of its {len(pods)} pods have begun" if len(pods) > 1 else told


def _from_events(events: Sequence[JsonObject]) -> str:
    for event in reversed(events):
        reason = text(event, "reason")
        message = text(event, "message")
        if reason in _REFUSED_EVENTS:
            return f"waits: {server_message(message)}"
        if reason in _VOLUME_EVENTS:
            return f"waits for its volumes: {short(message)}"
        if reason == "FailedCreatePodSandBox":
            return f"waits for its node to set it up: {short(message)}"
    return ""


def _starting(pods: Sequence[JsonObject]) -> str:
    pending = [pod for pod in pods if text(pod, "status", "phase") in {"", "Pending"}]
    if not pending:
        return ""
    nodes = sorted({text(pod, "spec", "nodeName") for pod in pending} - {""})
    if not nodes:
        return "waits for the scheduler to look at it"
    return f"is being started on {', '.join(nodes)}: its image is pulled, its volumes are mounted"
