"""The translation of the agent's answers into what the backend contract uses: states, nodes, the links of GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import status as statuses
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
    counts = [_nvlinks(pair) for pair in pairs]
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
