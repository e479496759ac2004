"""What the host has, as far as the agent's account may use it."""

from __future__ import annotations

import os
import subprocess

from jupyter_autotrain.core import system
from jupyter_autotrain.worker.resource_limits import describe as describe_limits

_FIELDS = "index,uuid,name,memory.total,memory.free"
_ASK_S = 20.0


def describe() -> dict[str, object]:
    """CPUs, memory, GPUs, and how limits are enforced."""
    return {
        "cpus": float(len(system.usable_cpus())),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": _gpus(),
        "limits": describe_limits(),
        "machine_id": system.boot_id(),
    }


def _gpus() -> list[list[object]]:
    """Of each GPU: index, id, model, memory and free memory in bytes, whether a process uses it."""
    rows = _ask_driver("--query-gpu=" + _FIELDS)
    busy = {row[0] for row in _ask_driver("--query-compute-apps=gpu_uuid")}
    gpus: list[list[object]] = []
    for index, uuid, name, total, free in rows:
        gpus.append([int(index), uuid, name, int(total) << 20, int(free) << 20, uuid in busy])
    return gpus


def _ask_driver(question: str) -> list[list[str]]:
    argv = ["nvidia-smi", question, "--format=csv,noheader,nounits"]
    try:
        asked = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True,
            timeout=_ASK_S,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []  # no driver: no GPUs
    return [_fields(line) for line in asked.stdout.splitlines() if line.strip()]


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split(",")]
