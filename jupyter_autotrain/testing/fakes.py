"""Doubles for tests: a clock that a test moves, and an NVML that answers from a list, for GPU discovery and slots."""

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
        """Return the number of devices."""
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:
        """Return a device's handle."""
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, handle: object) -> str:
        """Return a device's unique name."""
        return self._of(handle).uuid

    def nvmlDeviceGetName(self, handle: object) -> bytes:
        """Return a device's model; bytes, as older versions give it."""
        return self._of(handle).name.encode()

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> FakeMemory:
        """Return a device's memory."""
        return self._of(handle).memory

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> list[FakeProcess]:
        """Return the processes that compute on it."""
        return [FakeProcess(pid) for pid in self._of(handle).pids]

    def _of(self, handle: object) -> FakeGpu:
        assert self.sessions > 0, "asked outside of init and shutdown"
        assert isinstance(handle, FakeGpu)
        return handle


class FakeClock:
    """Call it for the time; `advance` moves it, backwards too.

    Args:
        now_s: Where it begins.
    """

    def __init__(self, now_s: float = 1_000_000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now_s

    def advance(self, by_s: float) -> None:
        """Move the clock."""
        self.now_s += by_s
