"""From the agent's answers to what the backend contract uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from jupyter_autotrain.backends.gpu_links import link_of
from jupyter_autotrain.backends.local import status as statuses
from jupyter_autotrain.core.backend import JobRef, JobStatus
from jupyter_autotrain.core.inventory import Accelerator, Node
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.states import TrialState


def status(ref: JobRef, answer: JsonValue) -> JobStatus:
    """How a job stands: its status, nothing where it never was, or a text that says why it cannot be told."""
    if isinstance(answer, str):
        return JobStatus(ref, TrialState.PREPARING, doubt=answer)
    if not isinstance(answer, Mapping):
        reason = f"Nothing is known of job {ref.job_id} there: it was never started, or its directory was deleted."
        return JobStatus(ref, TrialState.LOST, reason)
    return JobStatus(ref, TrialState(str(answer["state"])), statuses.reason(dict(answer)), answer)


def node(name: str, machine: JsonObject) -> Node:
    """What a host has."""
    gpus = []
    for index, uuid, kind, memory, free, busy in cast("list[tuple[int, str, str, int, int, bool]]", machine["gpus"]):
        gpus.append(Accelerator(index, uuid, kind, memory, free, busy))
    cpus = cast("float", machine["cpus"])
    return Node(
        name,
        cpus=cpus,
        memory_bytes=cast("int", machine["memory_bytes"]),
        accelerators=tuple(gpus),
        link=link_of(str(machine.get("topology", "")), cast("list[int] | None", machine.get("pcie"))),
        machine_id=str(machine["machine_id"]),
    )
