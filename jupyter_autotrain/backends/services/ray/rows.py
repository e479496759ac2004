"""The rows by which Ray describes jobs and nodes, as the states and nodes that they mean."""

from __future__ import annotations

from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.ray import reasons
from jupyter_autotrain.backends.services.ray.requests_of_trials import TYPE, mapping
from jupyter_autotrain.backends.services.service import ServiceState
from jupyter_autotrain.core.inventory import Accelerator, Node

_STATES: Final = {
    "PENDING": TrialState.PREPARING, "RUNNING": TrialState.RUNNING, "SUCCEEDED": TrialState.SUCCEEDED,
    "FAILED": TrialState.FAILED, "STOPPED": TrialState.CANCELLED,
}  # fmt: skip


def of_node(state: ServiceState, node: int) -> JsonObject:
    """Return where a node's job runs."""
    found = (state.where or {}).get("nodes")
    return mapping(found[node]) if isinstance(found, list) else {}


def where(details: JsonObject) -> JsonObject:
    """Return where a job runs: its node, as Ray and as its network call it."""
    agent = str(details.get("driver_agent_http_address") or "")
    return {"node_id": details.get("driver_node_id"), "address": agent.partition("://")[2].rpartition(":")[0]}


def state_of(details: JsonObject) -> ServiceState:
    """Return the state of a job."""
    state = _STATES.get(str(details.get("status")), TrialState.PREPARING)
    told = reasons.plain(details)
    if told.is_for_lack_of_a_node:
        state = TrialState.PREEMPTED
    return ServiceState(state, told.text, where(details))


def node(row: JsonObject) -> Node:
    """Return a node by a row of Ray's list."""
    total = mapping(row.get("resources_total"))
    name = str(row.get("node_ip"))
    kinds = [str(key)[len(TYPE) :] for key in total if str(key).startswith(TYPE)]
    kind = kinds[0] if kinds else None
    gpus = int(cast("float", total.get("GPU") or 0))
    memory = cast("float | None", total.get("memory"))
    return Node(
        name, cpus=cast("float | None", total.get("CPU")) or None, memory_bytes=int(memory) if memory else None,
        accelerators=tuple(Accelerator(index, f"{name}/{index}", kind) for index in range(gpus)),
    )  # fmt: skip
