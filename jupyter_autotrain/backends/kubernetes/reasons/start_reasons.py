"""What a trial waits for before it starts, as the rest of a sentence that begins with the trial. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jupyter_autotrain.backends.kubernetes.objects import naming, pod_view
from jupyter_autotrain.backends.kubernetes.objects.fields import condition, text
from jupyter_autotrain.backends.kubernetes.objects.workload import VOLCANO, Obstacle, WorkloadState
from jupyter_autotrain.backends.kubernetes.reasons import container_reasons, queue_reasons, scheduling_reasons
from jupyter_autotrain.backends.kubernetes.reasons.container_reasons import short
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.states import TrialState

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
    queued = queue_reasons.queued(found, events) if found is not None else ""
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
    if told := scheduling_reasons.of_pod(pod):
        obstacle = Obstacle.NONE if scheduling_reasons.waits_for_others(pod) else Obstacle.FAULT
        return _waits(_counted(told, pods), obstacle)
    if told := _with_registry(pod, events) or container_reasons.waiting(pod):
        obstacle = Obstacle.LASTING if container_reasons.is_lasting(pod) else Obstacle.FAULT
        return _waits(_counted(told, pods), obstacle)
    if told := container_reasons.running_init_container(pod):
        return _waits(_counted(told, pods))
    return None


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
    return text(event, "involvedObject", "name") == naming.name_of(pod)


def _counted(told: str, pods: Sequence[JsonObject]) -> str:
    """Of several pods, how many have begun."""
    begun = sum(1 for pod in pods if pod_view.phase(pod) in {"Running", "Succeeded"})
    return f"{told}; {begun} of its {len(pods)} pods have begun" if len(pods) > 1 else told


def _of_events(events: Sequence[JsonObject], pods: Sequence[JsonObject]) -> WorkloadState | None:
    """What the latest event says that still holds."""
    for event in reversed(events):
        state = _of_event(event, pods)
        if state is not None:
            return state
    return None


def _of_event(event: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState | None:
    reason = text(event, "reason")
    message = text(event, "message")
    if reason in _REFUSED_EVENTS or queue_reasons.is_refusal(message):
        if any(text(pod, "metadata", "creationTimestamp") > told_at(event) for pod in pods):
            return None  # pods were made since
        obstacle = Obstacle.NONE if queue_reasons.waits_for_others(message) else Obstacle.FAULT
        return _waits(f"waits: {queue_reasons.server_message(message)}", obstacle)
    if reason not in _VOLUME_EVENTS and reason != _SANDBOX_EVENT:
        return None
    if any(_is_about(event, pod) and condition(pod, pod_view.SET_UP) for pod in pods):
        return None  # its node has mended it since
    begin = "waits for its node to set it up" if reason == _SANDBOX_EVENT else "waits for its volumes"
    return _waits(f"{begin}: {short(message)}", Obstacle.FAULT)


def told_at(event: JsonObject) -> str:
    """Return when an event was told last, in a form that sorts."""
    return text(event, "lastTimestamp") or text(event, "eventTime") or text(event, "metadata", "creationTimestamp")


def _starting(pods: Sequence[JsonObject]) -> WorkloadState:
    pending = [pod for pod in pods if pod_view.phase(pod) in {"", "Pending"}]
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
