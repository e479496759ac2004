"""Why a trial ended, in whole sentences of a user's words: from its object and its pods. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.backends.kubernetes.objects.fields import condition, items, number, part, text
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadState
from jupyter_autotrain.backends.kubernetes.reasons import container_reasons, queue_reasons
from jupyter_autotrain.backends.kubernetes.reasons.container_reasons import short
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.states import TrialState

TIMED_OUT = "Timeout:"  # how the reason begins of a trial that the cluster has ended at its time limit
DELETED = "A pod of the trial was deleted by somebody else: an eviction, a preemption or a user."
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
        f"{TIMED_OUT} the trial ran longer than its limit (`timeout:` in the header). {{message}}",
    ),
}


def ended(pods: Sequence[JsonObject]) -> WorkloadState | None:
    """How the pods of a trial went badly: the first of them that did; None when none tells.

    What the cluster did to one of them explains what the others say.
    """
    if told := from_outside(pods):
        return told
    states = (_of_containers(pod) or _without_container(pod) for pod in pods)
    return next((state for state in states if state is not None), None)


def from_outside(pods: Sequence[JsonObject]) -> WorkloadState | None:
    """Return what the cluster did to a pod of a trial; None where none of them tells."""
    found = [state for state in map(_from_outside, pods) if state is not None]
    return max(found, key=lambda state: state.state is not TrialState.FAILED, default=None)


def deleted_by_others(pods: Sequence[JsonObject], kind: str, found: JsonObject | None) -> WorkloadState | None:
    """Return who deleted the pods of a trial, which nobody here did; None where all of them are there.

    Args:
        pods: Those that are left.
        kind: Of its object.
        found: Its object; None where there is none any more.
    """
    if found is None:
        return WorkloadState(TrialState.PREEMPTED, f"Somebody deleted its {kind} from the cluster.")
    if pods and not any(text(pod, "metadata", "deletionTimestamp") for pod in pods):
        return None
    if queue_reasons.is_suspended(found):
        told = f"Preempted: its {kind} was suspended, as a queue does for work of higher priority."
        return WorkloadState(TrialState.PREEMPTED, told)
    return WorkloadState(TrialState.PREEMPTED, DELETED)


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
    return f"{TIMED_OUT} the trial ran longer than its limit{limit} (`timeout:` in the header)."


def _seconds(told: str) -> float:
    try:
        return float(told)
    except ValueError:
        return 0.0


def _from_outside(pod: JsonObject) -> WorkloadState | None:
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
    return None


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


def _without_container(pod: JsonObject) -> WorkloadState | None:
    if text(pod, "status", "phase") != "Failed":
        return None
    message = short(text(pod, "status", "message"))
    reason = text(pod, "status", "reason")
    told = f"{reason}: {message}" if reason and message else reason or message or "the cluster gives no reason"
    return WorkloadState(TrialState.FAILED, f"Its pod failed: {told}.")
