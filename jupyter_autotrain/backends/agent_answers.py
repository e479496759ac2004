"""The translation of the agent's answers into what the backend contract uses: states, nodes, the links of GPUs.

Of the hosts that share a trial one status is made. Pure, but for the clocks that are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import termination_causes
from jupyter_autotrain.core.backend import CancelReceipt, JobRef, JobStatus
from jupyter_autotrain.core.devices import Link, LinkKind
from jupyter_autotrain.core.inventory import Accelerator, Node

_GPU = re.compile(r"GPU(\d+)")
_NVLINK = re.compile(r"NV(\d+)")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_NVLINK_BYTES_PER_S: Final = 25e9  # one link, per direction; NVLink 2, 3 and 4 alike (NVIDIA's data sheets)
_MOST_NVLINKS: Final = 18  # of one GPU (H100)
# PCIe x1 of each generation, per direction, after its encoding (PCI-SIG).
_PCIE_X1_BYTES_PER_S: Final = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}

_Gpu = tuple[int, str, str, "int | None", "int | None", bool]


def status(ref: JobRef, answer: JsonValue) -> JobStatus:
    """Return the status of a job from the answer of its host.

    The answer is a status, nothing where the job never was, or a text that says why it cannot be told.
    """
    if isinstance(answer, str):
        return JobStatus(ref, TrialState.PREPARING, doubt=answer)
    if not isinstance(answer, Mapping):
        reason = f"Nothing is known of job {ref.job_id} there: it was never started, or its directory was deleted."
        return JobStatus(ref, TrialState.LOST, reason)
    return JobStatus(ref, TrialState(str(answer["state"])), statuses.reason(dict(answer)), answer)


def receipt(answer: JsonValue) -> CancelReceipt:
    """Return the receipt of a cancel, as `CancelReceipt.to_json` gives it."""
    ended, killed, left, elapsed_s, note = cast("tuple[list[int], list[int], list[int], float, str]", answer)
    return CancelReceipt(tuple(ended), tuple(killed), tuple(left), elapsed_s, note)


def node(name: str, machine: JsonObject) -> Node:
    """Return the node with the resources of a host."""
    gpus = []
    for index, uuid, kind, memory, free, busy in cast("list[_Gpu]", machine["gpus"]):
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


def link_of(topology: str, pcie: Sequence[int] | None = None) -> Link | None:
    """Return the link by which each GPU of a node reaches the others: that of the worst pair.

    Args:
        topology: The matrix that `nvidia-smi topo -m` prints.
        pcie: Generation and lanes of the GPUs' PCIe; None where they are not known.

    Returns:
        None for a single GPU, and where neither is known.
    """
    pairs = _pairs(topology)
    if not pairs:
        return None
    counts = list(map(_nvlinks, pairs))
    if all(counts):
        return _nvlink(counts)
    if pcie is None or pcie[0] not in _PCIE_X1_BYTES_PER_S:
        return None
    return Link(LinkKind.SWITCH, _PCIE_X1_BYTES_PER_S[pcie[0]] * pcie[1], 10e-6, efficiency=0.8)


def _pairs(topology: str) -> list[str]:
    """Return the driver's abbreviation of the link between each GPU and each other one."""
    rows = [_ESCAPE.sub("", line).split("\t") for line in topology.splitlines()]
    heads = next((row for row in rows if len(row) > 1 and _GPU.fullmatch(row[1].strip())), [])
    columns = [number for number, head in enumerate(heads) if _GPU.fullmatch(head.strip())]
    found = []
    for row in rows:
        if row is not heads and _GPU.fullmatch(row[0].strip()):
            found += [row[column].strip() for column in columns if column < len(row)]
    return [pair for pair in found if pair != "X"]


def _nvlinks(pair: str) -> int:
    match = _NVLINK.fullmatch(pair)
    return int(match[1]) if match else 0


def _nvlink(counts: list[int]) -> Link:
    """Return the link that NVLinks make, by the counts of all pairs.

    It is switched where one pair has as many links as it would share with the others, else one bundle per pair.
    """
    per_pair = min(counts)
    others = round(len(counts) ** 0.5) or 1  # n * (n - 1) pairs
    direct = per_pair * others
    if others > 1 and direct <= _MOST_NVLINKS:
        return Link(LinkKind.FULL, direct * _NVLINK_BYTES_PER_S, 5e-6, efficiency=0.7)
    return Link(LinkKind.SWITCH, per_pair * _NVLINK_BYTES_PER_S, 5e-6, efficiency=0.7)


_WELL = frozenset({TrialState.SUCCEEDED, TrialState.EARLY_STOPPED})
# A host that was lost explains the failures of the ranks that waited for it. One that was told to end may have been
# told so because another one had failed: there the first counts.
_BY_TIME = frozenset({TrialState.PREEMPTED, TrialState.FAILED})
_CAUSES = (
    frozenset({TrialState.LOST}), _BY_TIME, frozenset({TrialState.CANCELLED}), frozenset({TrialState.EARLY_STOPPED}),
)  # fmt: skip


def must_end(own: Sequence[JobStatus]) -> bool:
    """Tell whether one host has failed in its part, so that the others shall end theirs."""
    return any(map(_has_failed, own))


def _has_failed(status: JobStatus) -> bool:
    return not status.doubt and status.state.is_final and status.state not in _WELL


def where(own: Sequence[JobStatus], number: int | None = None) -> str:
    """Return the host that has failed, or the one with this number, with its reason."""
    named = next(filter(_has_failed, own)) if number is None else own[number]
    return f"{node_of(named)}: {named.reason}"


def node_of(status: JobStatus) -> str:
    """Return the name of the host."""
    return str(status.ref.data.get("host", ""))


def of_first(ref: JobRef, own: Sequence[JobStatus]) -> JobStatus:
    """Return the state of the first host, whatever the others do, with the workers of all."""
    first = own[0]
    if first.doubt:
        return replace(first, ref=ref, unreachable_nodes=(node_of(first),) if first.unreachable else ())
    reason = first.reason if first.state.is_final else first.reason or _missing(own)
    return replace(first, ref=ref, reason=reason, detail=_detail(own, first))


def _missing(own: Sequence[JobStatus]) -> str:
    """Return the end of a sentence about a trial that names the hosts it goes on without."""
    lost = [node_of(status) for status in own if status.unreachable or status.state is TrialState.LOST]
    if not lost:
        return ""
    return f"goes on without {', '.join(lost)}, from which there is no answer; it takes lost hosts in again"


def unknown(ref: JobRef, own: Sequence[JobStatus]) -> JobStatus:
    """Return the status of a job of which not all hosts can tell; it names those that do not answer."""
    doubts = [status for status in own if status.doubt]
    why = "; ".join(dict.fromkeys(status.doubt for status in doubts))
    silent = tuple(node_of(status) for status in doubts if status.unreachable)
    nodes = silent if len(silent) < len(own) else ()
    return JobStatus(ref, doubts[0].state, doubt=why, unreachable=bool(silent), unreachable_nodes=nodes)


def running(ref: JobRef, own: Sequence[JobStatus]) -> JobStatus:
    """Return the status of a trial while not all hosts have ended."""
    states = {status.state for status in own}
    state = TrialState.PREPARING if TrialState.PREPARING in states else TrialState.RUNNING
    reason = next((status.reason for status in own if status.state is state), "")
    return JobStatus(ref, state, reason, _detail(own, own[0]))


def ended(ref: JobRef, own: Sequence[JobStatus], clock_offset_s: Callable[[str], float]) -> JobStatus:
    """Return the status once all have ended: that of the host that ended first for a reason of its own.

    Args:
        ref: The job.
        own: The statuses of its hosts, by rank.
        clock_offset_s: How far a host's clock is ahead; asked only when several have failed by themselves.
    """
    cause = _cause(own, clock_offset_s)
    if cause is own[0] and cause.state in _WELL:
        return replace(own[0], ref=ref, detail=_detail(own, cause))
    return JobStatus(ref, cause.state, _named(cause), _detail(own, cause))


def _cause(own: Sequence[JobStatus], clock_offset_s: Callable[[str], float]) -> JobStatus:
    nodes = [{**status.detail, "state": status.state, "reason": status.reason} for status in own]

    def at_s(number: int) -> float:
        if own[number].state not in _BY_TIME:
            return 0.0
        return termination_causes.failed_s(nodes[number]) - clock_offset_s(node_of(own[number]))

    number = termination_causes.first_cause(nodes, [partial(_is_in, states) for states in _CAUSES], at_s)
    return own[number or 0]


def _is_in(states: Collection[TrialState], status: Mapping[str, object]) -> bool:
    return status["state"] in states


def _named(cause: JobStatus) -> str:
    """Return the reason, with the host."""
    first, colon, rest = cause.reason.partition(" failed: ")
    if colon and first.startswith("Rank "):
        return f"{first} on {node_of(cause)} failed: {rest}"
    return f"On {node_of(cause)}: {cause.reason}" if cause.reason else ""


def _detail(own: Sequence[JobStatus], cause: JobStatus) -> JsonObject:
    """Return the status file's content of the host that counts, with the workers and processes of all."""
    workers: list[JsonValue] = []
    for status in own:
        rows = cast("Sequence[Mapping[str, JsonValue]]", status.detail.get("workers") or ())
        workers += [{**row, "node": node_of(status)} for row in rows]
    first = own[0].detail
    return {**cause.detail, "worker": first.get("worker"), "workers": workers, "receipt": _receipts(own)}


def _receipts(own: Sequence[JobStatus]) -> JsonObject:
    """Return the receipt of ending it on all hosts; its pids are those of their hosts."""
    total: dict[str, list[JsonValue]] = {"ended": [], "killed": [], "left": []}
    for status in own:
        receipt = status.detail.get("receipt")
        if isinstance(receipt, Mapping):
            for kind in total:
                total[kind] += cast("Sequence[int]", receipt.get(kind) or ())
    return total
