"""An NVML that answers from a list, for tests of GPU discovery and slots."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class FakeMemory:
    """Memory of a device, in bytes."""

    total: int
    free: int


@dataclass(slots=True)
class FakeProcess:
    """A process that computes on a device."""

    pid: int


@dataclass(slots=True)
class FakeGpu:
    """One device; `pids` are the processes that compute on it."""

    uuid: str
    name: str = "Fake A100"
    memory: FakeMemory = field(default_factory=lambda: FakeMemory(80 << 30, 80 << 30))
    pids: list[int] = field(default_factory=list)


class FakeNvml:
    """Stands in for the module `pynvml`.

    Args:
        gpus: The devices.
        fault: Raised by `nvmlInit`, as when there is no driver.
    """

    def __init__(self, gpus: list[FakeGpu], fault: Exception | None = None) -> None:
        self.gpus = gpus
        self.fault = fault
        self.sessions = 0

    def nvmlInit(self) -> None:
        """Begin."""
        if self.fault is not None:
            raise self.fault
        self.sessions += 1

    def nvmlShutdown(self) -> None:
        """End."""
        self.sessions -= 1

    def nvmlDeviceGetCount(self) -> int:
        """How many devices there are."""
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:
        """A device's handle."""
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, handle: object) -> str:
        """A device's unique name."""
        return self._of(handle).uuid

    def nvmlDeviceGetName(self, handle: object) -> bytes:
        """A device's model; bytes, as older versions give it."""
        return self._of(handle).name.encode()

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> FakeMemory:
        """A device's memory."""
        return self._of(handle).memory

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> list[FakeProcess]:
        """The processes that compute on it."""
        return [FakeProcess(pid) for pid in self._of(handle).pids]

    def _of(self, handle: object) -> FakeGpu:
        assert self.sessions > 0, "asked outside of init and shutdown"
        assert isinstance(handle, FakeGpu)
        return handle
