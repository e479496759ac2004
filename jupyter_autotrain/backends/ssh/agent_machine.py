"""What the host has, as far as the agent's account may use it."""

from __future__ import annotations

import os

from jupyter_autotrain.backends.local import nvidia_smi
from jupyter_autotrain.core import system
from jupyter_autotrain.worker.resource_limits import describe as describe_limits

_FIELDS = "index,uuid,name,memory.total,memory.free"


def describe() -> dict[str, object]:
    """CPUs, memory, GPUs, and how limits are enforced."""
    return {
        "cpus": float(len(system.usable_cpus())),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": _gpus(),
        "topology": nvidia_smi.topology(),
        "pcie": nvidia_smi.pcie(),
        "limits": describe_limits(),
        "machine_id": system.boot_id(),
    }


def _gpus() -> list[list[object]]:
    """Of each GPU: index, id, model, memory and free memory in bytes, whether a process uses it."""
    rows = nvidia_smi.rows("--query-gpu=" + _FIELDS)
    busy = {row[0] for row in nvidia_smi.rows("--query-compute-apps=gpu_uuid")}
    gpus: list[list[object]] = []
    for index, uuid, name, total, free in rows:
        gpus.append([int(index), uuid, name, int(total) << 20, int(free) << 20, uuid in busy])
    return gpus
