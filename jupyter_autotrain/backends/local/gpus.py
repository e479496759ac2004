"""The GPUs of this machine, by NVIDIA's management library (NVML)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.wire import TRIAL_VARIABLE
from jupyter_autotrain.core.inventory import Accelerator


class Memory(Protocol):
    """A device's memory, in bytes."""

    total: int
    free: int


class Process(Protocol):
    """A process that computes on a device."""

    pid: int


class Nvml(Protocol):
    """The part of `pynvml` that is used; a test brings its own."""

    def nvmlInit(self) -> None:
        """Start the use of the library."""
        ...

    def nvmlShutdown(self) -> None:
        """End the use of the library."""
        ...

    def nvmlDeviceGetCount(self) -> int:
        """Return the number of devices."""
        ...

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:
        """Return a device's handle."""
        ...

    def nvmlDeviceGetUUID(self, handle: object) -> str | bytes:
        """Return a device's unique name."""
        ...

    def nvmlDeviceGetName(self, handle: object) -> str | bytes:
        """Return a device's model."""
        ...

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> Memory:
        """Return the memory of a device: `total` and `free`, in bytes."""
        ...

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> Sequence[Process]:
        """Return the processes that compute on it, each with `pid`."""
        ...


def _load() -> Nvml:
    return cast("Nvml", import_module("pynvml"))


def find(nvml: Nvml | None = None) -> tuple[Accelerator, ...]:
    """Return all GPUs, or none when the library or the driver is absent."""
    return _read_status(nvml)[0]


def sentence(nvml: Nvml | None = None) -> str:
    """Return the GPUs found, or the reason why there is none, as part of a sentence."""
    found, reason = _read_status(nvml)
    counts = Counter(gpu.kind for gpu in found)
    return ", ".join(sorted(f"{count} x {kind}" for kind, count in counts.items())) or reason


def _read_status(nvml: Nvml | None) -> tuple[tuple[Accelerator, ...], str]:
    try:
        library = nvml or _load()
        library.nvmlInit()
    except ModuleNotFoundError:
        return (), "no GPUs seen (pip install 'jupyter-autotrain[gpu]' to look for NVIDIA's)"
    except Exception as error:  # noqa: BLE001 - NVML raises its own kinds, e.g. when there is no driver
        return (), f"no GPUs seen ({error})"
    try:
        return tuple(_gpu(library, index) for index in range(library.nvmlDeviceGetCount())), "no GPUs"
    except Exception as error:  # noqa: BLE001 - the same: a device may fall off the bus while we look
        return (), f"no GPUs seen ({error})"
    finally:
        library.nvmlShutdown()


def _gpu(library: Nvml, index: int) -> Accelerator:
    handle = library.nvmlDeviceGetHandleByIndex(index)
    memory = library.nvmlDeviceGetMemoryInfo(handle)
    users = [int(process.pid) for process in library.nvmlDeviceGetComputeRunningProcesses(handle)]
    return Accelerator(
        index=index,
        id=_text(library.nvmlDeviceGetUUID(handle)),
        kind=_text(library.nvmlDeviceGetName(handle)),
        memory_bytes=int(memory.total),
        memory_free_bytes=int(memory.free),
        busy=any(not _is_ours(pid) for pid in users),
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _is_ours(pid: int) -> bool:
    """Tell whether a process belongs to a trial: it carries the trial directory in its environment."""
    try:
        variables = system.environment(pid)
    except OSError:
        return pid == os.getpid()
    return any(variable.startswith(f"{TRIAL_VARIABLE}=".encode()) for variable in variables)
