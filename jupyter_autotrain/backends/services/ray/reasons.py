"""The reasons that Ray gives for the state of a job, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jupyter_autotrain.agent.json import JsonObject

_MOST = 300
_WAITS = "waits in Ray for a node with what it asks for"
# By Ray's `error_type` of a job.
_TEXTS: Final = {
    "RUNTIME_ENV_SETUP_FAILURE": "Ray could not make the runtime_env of its job: {said}",
    "JOB_SUPERVISOR_ACTOR_START_FAILURE": "Ray could not start its job: {said}",
    "JOB_SUPERVISOR_ACTOR_START_TIMEOUT": "Ray had no node for it in time, and gave its job up.",
    "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE": "No node of the Ray cluster has what it asks for: {said}",
    "JOB_SUPERVISOR_ACTOR_DIED": "Its node was lost, or Ray ended its job: {said}",
    "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE": "Ray lost its job: {said}",
    "JOB_ENTRYPOINT_COMMAND_START_ERROR": "Its interpreter cannot be started on the node: {said}",
    "JOB_ENTRYPOINT_COMMAND_ERROR": "",  # the log says it
}


@dataclass(frozen=True, slots=True)
class RayReason:
    """A reason.

    Attributes:
        text: In plain words; "" where Ray does not say more than the trial.
        is_for_lack_of_a_node: Whether it may go well when it is tried again.
    """

    text: str = ""
    is_for_lack_of_a_node: bool = False


def plain(details: JsonObject) -> RayReason:
    """Return the reason for the state of a job, as Ray's interface describes it."""
    status = details.get("status")
    if status == "PENDING":
        return RayReason(_WAITS)
    if status == "STOPPED":
        return RayReason("Somebody has stopped its job in Ray.")
    if status != "FAILED":
        return RayReason()
    kind = str(details.get("error_type") or "")
    said = _last_line(str(details.get("message") or ""))
    text = _TEXTS.get(kind, "Ray says of its job: {said}").format(said=said)
    return RayReason(text, kind == "JOB_SUPERVISOR_ACTOR_START_TIMEOUT")


def _last_line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1][:_MOST] if lines else "nothing more"
