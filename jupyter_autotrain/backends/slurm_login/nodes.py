"""What the nodes of a cluster have, as `scontrol` tells. Runs on the login node."""

from __future__ import annotations

import re
from collections.abc import Callable

_FIELD = re.compile(r"(\w+)=(\S*)")
_GPU = re.compile(r"gpu:(?:([^:,()]+):)?(\d+)")
_UNUSABLE = ("DOWN", "DRAIN", "FAIL", "MAINT", "POWERED_DOWN", "UNKNOWN", "NOT_RESPONDING")
NodeRow = dict[str, object]  # name, cpus, memory_bytes, gpus: [[kind, count]], partitions, state


def listing(run: Callable[[list[str]], str], partition: str) -> list[NodeRow]:
    """All nodes, or those of a partition, that can run jobs."""
    rows = [_row(line) for line in run(["scontrol", "--oneliner", "show", "node"]).splitlines() if "NodeName=" in line]
    usable = [row for row in rows if not str(row["state"]).startswith(_UNUSABLE)]
    if not partition:
        return usable
    return [row for row in usable if partition in str(row["partitions"]).split(",")]


def _row(line: str) -> NodeRow:
    fields = dict(_FIELD.findall(line))
    gpus = [[kind or None, int(count)] for kind, count in _GPU.findall(fields.get("Gres", ""))]
    return {
        "name": fields["NodeName"], "cpus": _number(fields.get("CPUEfctv") or fields.get("CPUTot")),
        "memory_bytes": _number(fields.get("RealMemory")) << 20, "gpus": gpus,
        "partitions": fields.get("Partitions", ""), "state": fields.get("State", "UNKNOWN"),
    }  # fmt: skip


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
