"""Why a trial has not begun, and why it has ended, from its object and its pods. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects import container_reasons, naming, pending_reasons, pod_parts
from jupyter_autotrain.backends.kubernetes.objects.container_reasons import short
from jupyter_autotrain.backends.kubernetes.objects.fields import condition, items, number, part, text
from jupyter_autotrain.backends.kubernetes.objects.workload import VOLCANO, Obstacle, WorkloadState

_REFUSED_EVENTS: Final = frozenset({"FailedCreate", "FailedCreatePod", "TrainJobResourcesCreationFailed"})
_VOLUME_EVENTS: Final = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume", "ProvisioningFailed"})
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_SANDBOX_EVENT: Final = "FailedCreatePodSandBox"


def preparing(
    pods: Sequence[JsonObject], events: Sequence[JsonObject] = (), found: JsonObject | None = None, otherwise: str = ""
) -> WorkloadState:
    """Return what a trial waits for that has not begun, and what of it waiting does not mend.

    Args:
        pods: Its pods, as far as there are any.
        events: Those of its object and its pods; without them a quota and a volume may stay unexplained.
        found: Its object.
        otherwise: What is said of a trial without pods where nothing tells why it has none.
    """
    queued = pending_reasons.queued(found, events) if found is not None else ""
    if queued:
        return _waits(queued)
    of_pods = [_of_pod(pod, pods, events) for pod in pods]
    told = [state for state in (*of_pods, _of_events(events, pods)) if state is not None]
    if told:
        return max(told, key=lambda state: state.obstacle)
    return _starting(pods) if pods else _waits(otherwise, Obstacle.FAULT)


def _waits(reason: str, obstacle: Obstacle = Obstacle.NONE) -> WorkloadState:
    return WorkloadState(TrialState.PREPARING, reason, obstacle)


def _of_pod(pod: JsonObject, pods: Sequence[JsonObject], events: Sequence[JsonObject]) -> WorkloadState | None:
    if told := pending_reasons.unscheduled(pod):
        obstacle = Obstacle.NONE if pending_reasons.pod_waits_for_others(pod) else Obstacle.FAULT
        return _waits(_counted(told, pods), obstacle)
    if told := _with_registry(pod, events) or container_reasons.waiting(pod):
        obstacle = Obstacle.LASTING if container_reasons.is_lasting(pod) else Obstacle.FAULT
        return _waits(_counted(told, pods), obstacle)
    if told := container_reasons.running_init_container(pod):
        return _waits(_counted(told, pods))
    return None


def _with_registry(pod: JsonObject, events: Sequence[JsonObject]) -> str:
    """Return the registry's words from an earlier event: a pull that is backed off tells no more than that."""
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
    return text(event, "involvedObject", "name") == naming.name_of(pod)


def _counted(told: str, pods: Sequence[JsonObject]) -> str:
    """Tell of several pods how many have begun."""
    begun = sum(1 for pod in pods if pod_parts.phase(pod) in {"Running", "Succeeded"})
    return f"{told}; {begun} of its {len(pods)} pods have begun" if len(pods) > 1 else told


def _of_events(events: Sequence[JsonObject], pods: Sequence[JsonObject]) -> WorkloadState | None:
    """Return what the latest event says that still holds."""
    for event in reversed(events):
        state = _of_event(event, pods)
        if state is not None:
            return state
    return None


def _of_event(event: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState | None:
    reason = text(event, "reason")
    message = text(event, "message")
    if reason in _REFUSED_EVENTS or pending_reasons.is_refusal(message):
        return _of_refusal(event, message, pods)
    if reason not in _VOLUME_EVENTS and reason != _SANDBOX_EVENT:
        return None
    if any(_is_about(event, pod) and condition(pod, pod_parts.SET_UP) for pod in pods):
        return None  # its node has mended it since
    begin = "waits for its node to set it up" if reason == _SANDBOX_EVENT else "waits for its volumes"
    return _waits(f"{begin}: {short(message)}", Obstacle.FAULT)


def _of_refusal(event: JsonObject, message: str, pods: Sequence[JsonObject]) -> WorkloadState | None:
    """Return what an event about pods that were refused says; None where pods were made since."""
    if any(text(pod, "metadata", "creationTimestamp") > told_at(event) for pod in pods):
        return None
    obstacle = Obstacle.NONE if pending_reasons.quota_waits_for_others(message) else Obstacle.FAULT
    return _waits(f"waits: {pending_reasons.server_message(message)}", obstacle)


def told_at(event: JsonObject) -> str:
    """Return when an event was told last, in a form that sorts."""
    return text(event, "lastTimestamp") or text(event, "eventTime") or text(event, "metadata", "creationTimestamp")


def _starting(pods: Sequence[JsonObject]) -> WorkloadState:
    pending = [pod for pod in pods if pod_parts.phase(pod) in {"", "Pending"}]
    if not pending:
        return _waits("")
    nodes = sorted({text(pod, "spec", "nodeName") for pod in pending} - {""})
    if not nodes:
        scheduler = text(pending[0], "spec", "schedulerName")
        named = f" {scheduler}" if scheduler not in {"", _DEFAULT_SCHEDULER} else ""
        # Volcano does not look at pods before it admits their group; of others there is none, or it does not run.
        obstacle = Obstacle.NONE if scheduler == VOLCANO else Obstacle.FAULT
        return _waits(f"waits for the scheduler{named} to look at it", obstacle)
    told = f"is being started on {', '.join(nodes)}: its image is pulled, its volumes are mounted"
    return _waits(told)


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
    "DeletionByPodGC": (TrialState.LOST, "The node {node} was lost: it is no longer part of the cluster."),
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
    """Return how the pods of a trial went badly: the first of them that did; None when none tells.

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
    if pending_reasons.is_suspended(found):
        told = f"Preempted: its {kind} was suspended, as a queue does for work of higher priority."
        return WorkloadState(TrialState.PREEMPTED, told)
    return WorkloadState(TrialState.PREEMPTED, DELETED)


def out_of_memory(pods: Sequence[JsonObject]) -> str:
    """Return that a container was killed at its memory limit, be it one that was started again; "" where none was."""
    for pod in pods:
        for status in container_reasons.statuses(pod):
            reasons = {text(status, when, "terminated", "reason") for when in ("state", "lastState")}
            if "OOMKilled" in reasons:
                return container_reasons.out_of_memory(pod, text(status, "name"))
    return ""


def restarted(pods: Sequence[JsonObject]) -> str:
    """Return how a container of a trial went badly that was started again; "" where none was."""
    for pod in pods:
        for status in items(pod, "status", "containerStatuses"):
            ended_as = part(status, "lastState", "terminated")
            if ended_as.get("exitCode"):
                return _of_container(pod, text(status, "name"), ended_as, is_init=False)
    return ""


def deadline(found: JsonObject, *path: str) -> str:
    """Return the cluster ended the trial at its time limit.

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
