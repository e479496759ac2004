"""The resources of a machine, as far as this account may use them: CPUs, memory, and NVIDIA's GPUs by `nvidia-smi`."""

from __future__ import annotations

import os

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.supervisor.resource_limits import describe as describe_limits
from jupyter_autotrain.agent.system import nvidia
from jupyter_autotrain.agent.wire import TRIAL_VARIABLE


def describe() -> dict[str, object]:
    """Return the CPUs, the memory, the GPUs and the links between them, and the way that limits are enforced."""
    return {
        "cpus": float(len(system.usable_cpus())),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": gpus(),
        "topology": nvidia.topology(),
        "pcie": nvidia.pcie(),
        "limits": describe_limits(),
        "machine_id": system.boot_id(),
    }


def gpus() -> list[list[object]]:
    """Return for each GPU: index, id, model, memory, free memory, whether a program that is no trial uses it.

    Memory is in bytes, and None where the driver does not tell it.
    """
    rows = nvidia.rows("--query-gpu=index,uuid,name,memory.total,memory.free")
    used = nvidia.rows("--query-compute-apps=gpu_uuid,pid") if rows else []
    busy = {uuid for uuid, pid in used if not _is_a_trials(pid)}
    found: list[list[object]] = []
    for index, uuid, name, total, free in rows:
        found.append([int(index), uuid, name, _bytes(total), _bytes(free), uuid in busy])
    return found


def _bytes(mebibytes: str) -> int | None:
    return int(mebibytes) << 20 if mebibytes.isdigit() else None


def _is_a_trials(pid: str) -> bool:
    """Tell whether a process belongs to a trial: it carries the trial directory in its environment."""
    try:
        variables = system.environment(int(pid))
    except (OSError, ValueError):  # another user's, or not told
        return False
    return any(variable.startswith(f"{TRIAL_VARIABLE}=".encode()) for variable in variables)
