"""NVIDIA GPUs: what the driver says of this machine, by its program, and the load of a trial's, by its library (NVML).

Where there is no driver, there is nothing. A call of the library may hang with a GPU that has failed. So each look runs
in a thread of its own, and its answer is taken at the next one. Source: the NVML API reference.
"""

from __future__ import annotations

import _thread  # threading would cost its import
from collections.abc import Sequence
from functools import lru_cache

_ASK_S = 20.0
TYPE_CHECKING = False  # `typing` would cost every trial its import


def ask(*question: str) -> str:
    """Return the output of `nvidia-smi`; nothing where there is no driver."""
    import subprocess  # noqa: PLC0415 - a trial never asks

    try:
        asked = subprocess.run(
            ["nvidia-smi", *question], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            check=True, text=True, timeout=_ASK_S,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout


def rows(question: str) -> list[list[str]]:
    """Return the fields of each line of an answer."""
    answer = ask(question, "--format=csv,noheader,nounits")
    return [_fields(line) for line in answer.splitlines() if line.strip()]


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split(",")]


@lru_cache(maxsize=1)
def topology() -> str:
    """Return the matrix of the links between GPUs; it stays as it is, so it is asked once."""
    return ask("topo", "-m")


@lru_cache(maxsize=1)
def pcie() -> tuple[int, int] | None:
    """Return the generation and lanes of the narrowest PCIe link of a GPU; None where they are not known."""
    answers = rows("--query-gpu=pcie.link.gen.max,pcie.link.width.max")
    known = [(int(fields[0]), int(fields[1])) for fields in answers if _is_known(fields)]
    return min(known) if known else None


def _is_known(fields: list[str]) -> bool:
    return len(fields) == 2 and all(field.isdigit() for field in fields)


if TYPE_CHECKING:
    import ctypes

_LIBRARY = "libnvidia-ml.so.1"
_NOTHING: tuple[float | None, int | None] = (None, None)


class GpuUsage:
    """The GPUs of one trial.

    Args:
        names: Their numbers or UUIDs; none means all that the library shows.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._library: ctypes.CDLL | None = None
        self._handles: list[ctypes.c_void_p] = []
        self._found = _NOTHING
        self._is_looking = False

    def look(self) -> tuple[float | None, int | None]:
        """Return the result of the look before, and begin another: mean percent busy, bytes in use together."""
        found, self._found = self._found, _NOTHING
        if not self._is_looking:
            self._is_looking = True
            _thread.start_new_thread(self._run, ())
        return found

    def _run(self) -> None:
        try:
            self._found = self._read(self._library or self._open())
        except (OSError, AttributeError):  # there is no library, or a very old one: it is not looked for again
            return
        self._is_looking = False

    def _open(self) -> ctypes.CDLL:
        import ctypes  # noqa: PLC0415 - slow, and in the thread nobody waits for it

        library = ctypes.CDLL(_LIBRARY)
        if library.nvmlInit_v2():
            raise OSError("NVML does not begin")
        count = ctypes.c_uint()
        library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for name in self._names or list(map(str, range(count.value))):
            handle = ctypes.c_void_p()
            if name.isdigit():
                failed = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(name)), ctypes.byref(handle))
            else:
                failed = library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
            if not failed:
                self._handles.append(handle)
        self._library = library
        return library

    def _read(self, library: ctypes.CDLL) -> tuple[float | None, int | None]:
        import ctypes  # noqa: PLC0415 - as above

        percents = []
        used = []
        for handle in self._handles:
            rates = (ctypes.c_uint * 2)()  # nvmlUtilization_t: gpu, memory
            memory = (ctypes.c_ulonglong * 3)()  # nvmlMemory_t: total, free, used
            if not library.nvmlDeviceGetUtilizationRates(handle, rates):
                percents.append(rates[0])
            if not library.nvmlDeviceGetMemoryInfo(handle, memory):
                used.append(memory[2])
        return (sum(percents) / len(percents) if percents else None, sum(used) if used else None)
