"""The use of a trial's node: CPU time, memory and GPUs, written to its directory from time to time.

The pauses grow with the trial's age, which bounds the file: about 200 lines, and 200 more each time the age grows
e-fold (2,100 after a month). They also grow with what a look costs, which bounds its share of a CPU; memory, whose
pages the kernel counts one by one, has pauses of its own, in which the last count holds.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping

from jupyter_autotrain.agent import fields, system, wire
from jupyter_autotrain.agent.system import processes

TYPE_CHECKING = False  # `typing` would cost every trial its import
if TYPE_CHECKING:
    from jupyter_autotrain.agent.system.nvidia import GpuUsage

LEAST_PAUSE_S = 1.0
LINES_PER_AGE = 200
_PAUSE_PER_COST = 1000.0  # 0.1 % of a CPU
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class UsageFile:
    """The file `usage` of the trial in the current directory.

    Args:
        trial: `TrialSpec` as JSON.
        env: The variables of its workers.
    """

    def __init__(self, trial: Mapping[str, object], env: Mapping[str, str]) -> None:
        self._begun_s = self._looked_s = time.monotonic()
        self._due_s = self._begun_s + LEAST_PAUSE_S
        self._cpu_s = _cpu_s(_members(set()))
        self._memory_bytes = 0
        self._memory_due_s = self._begun_s
        self._gpus = _gpus(trial, env)

    def update(self, workers: set[int]) -> None:
        """Add a line when one is due.

        Args:
            workers: The workers, or what has started them: children of this process.
        """
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        members = _members(workers)
        if now_s >= self._memory_due_s:
            begun_s = time.process_time()
            self._memory_bytes = processes.resident_bytes(members)
            self._memory_due_s = now_s + _pause_s(begun_s)
        begun_s = time.process_time()
        self._write(self._look(now_s, members))
        self._due_s = now_s + max(LEAST_PAUSE_S, (now_s - self._begun_s) / LINES_PER_AGE, _pause_s(begun_s))

    def _look(self, now_s: float, members: set[int]) -> list[float | None]:
        looked_s = time.monotonic()  # not the time of the line: the count of memory before may have taken long
        cpu_s = _cpu_s(members)
        used_s = min(max(cpu_s - self._cpu_s, 0.0), (looked_s - self._looked_s) * (os.cpu_count() or 1))
        percent = used_s / max(looked_s - self._looked_s, 0.001) * 100
        self._cpu_s = cpu_s
        self._looked_s = looked_s
        gpu_percent, gpu_bytes = (None, None) if self._gpus is None else self._gpus.look()
        return [round(now_s - self._begun_s, 1), round(percent, 1), self._memory_bytes, gpu_percent, gpu_bytes]

    def _write(self, line: list[float | None]) -> None:
        with contextlib.suppress(OSError):  # a full disk: the curve has a gap
            fd = os.open(wire.USAGE, _FLAGS, 0o600)
            try:
                os.write(fd, json.dumps(line).encode() + b"\n")
            finally:
                os.close(fd)


def _cpu_s(members: set[int]) -> float:
    """Return the CPU time of these processes, and of the children of this one that have ended."""
    times = os.times()
    return times.children_user + times.children_system + sum(map(system.cpu_s, members))


def _pause_s(begun_s: float) -> float:
    """Return the least pause after something that began at this CPU time of the process."""
    return (time.process_time() - begun_s) * _PAUSE_PER_COST


def _members(workers: set[int]) -> set[int]:
    """Return the trial's processes: the workers, all that they have started, and orphans of these.

    A manager of another trial is none of them.
    """
    found = workers - {0}  # 0: one that has not started yet
    found |= {pid for pid in system.children(os.getpid()) if pid in workers or not processes.is_of_manager(pid)}
    todo = list(found)
    while todo:
        below = set(system.children(todo.pop())) - found
        found |= below
        todo += below
    return found


def _gpus(trial: Mapping[str, object], env: Mapping[str, str]) -> GpuUsage | None:
    """Return the GPUs of the trial; None where it has none.

    They are those of its variables, else all that its node shows.
    """
    if not fields.mapping(trial.get("resources")).get("gpus"):
        return None
    from jupyter_autotrain.agent.system.nvidia import GpuUsage  # noqa: PLC0415 - only trials with GPUs pay

    visible = env.get("CUDA_VISIBLE_DEVICES", "")
    return GpuUsage(visible.split(",") if visible else [])
