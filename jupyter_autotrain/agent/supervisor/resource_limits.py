"""A trial's limits: by control groups where they can be made, else by polling and pinning; and its lease."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping

from jupyter_autotrain.agent import fields, system
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.agent.system import cgroup_setup, processes
from jupyter_autotrain.agent.system.cgroups import CgroupLimits, ControlGroups

MOST_PROCESSES = 4096
_ENTER = 'for group; do echo 0 > "$group/cgroup.procs" || exit 1; done'


class ResourceLimits:
    """The limits of one trial. Make them early, and `settle` them late: the time between costs nothing.

    Args:
        trial: `TrialSpec` as JSON. The option `max_processes` bounds processes and threads together. Trials whose
            numbers are next to each other get different CPUs when they are pinned.
    """

    def __init__(self, trial: Mapping[str, object]) -> None:
        resources = fields.mapping(trial.get("resources"))
        options = fields.mapping(trial.get("options"))
        memory = resources.get("memory_bytes")
        cpus = resources.get("cpus")
        self.memory_bytes = int(memory) if isinstance(memory, (int, float)) else None
        self.cpus = float(cpus) if isinstance(cpus, (int, float)) else None
        most = options.get("max_processes")
        processes_limit = int(most) if isinstance(most, (int, float)) else MOST_PROCESSES
        self.cgroups = cgroup_setup.create(CgroupLimits(self.memory_bytes, self.cpus, processes_limit))
        self._joining = _begin_to_join(self.cgroups)
        self._number = fields.integer(trial.get("number"), 1)
        self.peak_bytes = 0

    def settle(self) -> None:
        """Wait until it is known whether processes can join the groups; do without them where they cannot.

        Before it no child may be reaped.
        """
        if self._joining and os.waitpid(self._joining, 0)[1] != 0:
            self.cgroups.remove()
            self.cgroups = ControlGroups(1, {})
        self._joining = 0

    @property
    def polls_memory(self) -> bool:
        """True when memory must be watched from here, because the kernel does not."""
        return self.memory_bytes is not None and "memory" not in self.cgroups.limited

    def text(self) -> str:
        """Return a sentence on the limits that act, and their means."""
        version = f"cgroup v{self.cgroups.version}"
        parts = []
        if self.memory_bytes is not None:
            by = "polling" if self.polls_memory else version
            parts.append(f"memory {format_bytes(self.memory_bytes)} by {by}")
        if self.cpus is not None:
            parts.append(f"cpus {self.cpus:g} {self._cpus_limited_by(version)}")
        parts.append(f"process count by {version}" if "pids" in self.cgroups.limited else "process count not limited")
        return "; ".join(parts)

    def _cpus_limited_by(self, version: str) -> str:
        if "cpu" in self.cgroups.limited:
            return f"by {version}"
        return f"by pinning to {len(self._pinned())} CPUs" if system.CAN_PIN else "not limited"

    def _pinned(self) -> list[int]:
        allowed = system.usable_cpus()
        count = min(len(allowed), max(1, math.ceil(self.cpus or 1.0)))
        first = (self._number - 1) * count
        return sorted({allowed[(first + k) % len(allowed)] for k in range(count)})

    def apply(self) -> None:
        """Put the calling process, soon the worker, under the limits."""
        has_joined = self.cgroups.join()
        if self.cpus is not None and not (has_joined and "cpu" in self.cgroups.limited):
            system.pin_to_cpus(self._pinned())

    def exceeded(self, members: set[int]) -> bool:
        """Tell whether memory is watched from here and the members hold more than they may."""
        if not self.polls_memory:
            return False
        used = processes.resident_bytes(members)
        self.peak_bytes = max(self.peak_bytes, used)
        return used > (self.memory_bytes or 0)


def _begin_to_join(groups: ControlGroups) -> int:
    """Try to join with a child, and return its pid.

    The try is needed since systemd may let us make a group and yet not move a process into it. The first process that
    joins waits for the kernel, 15 ms on a usual machine; those that follow do not. A shell, because a copy of this
    process costs as much as its memory is large, which may hold PyTorch.
    """
    if not groups.folders:
        return 0
    try:
        return os.posix_spawn("/bin/sh", ["sh", "-c", f"exec 2>/dev/null; {_ENTER}", "sh", *groups.paths()], {})
    except OSError:  # there is none
        pid = os.fork()
        if pid == 0:
            os._exit(0 if groups.join() else 1)
        return pid


def describe() -> str:
    """Return a sentence on how limits are enforced on this machine. Safe to ask from a process with threads."""
    import subprocess  # noqa: PLC0415 - a trial never asks

    cgroup_setup.remove_stale()
    groups = cgroup_setup.create(CgroupLimits(1 << 30, 1.0, MOST_PROCESSES))
    try:
        tried = subprocess.run(["sh", "-c", _ENTER, "sh", *groups.paths()], stderr=subprocess.DEVNULL, check=False)
        if tried.returncode == 0 and {"memory", "cpu"} <= groups.limited:
            return f"CPU and memory limits are kept by cgroup v{groups.version}"
        if not system.CAN_PIN:
            return "Memory limits are kept by polling, CPU limits not at all"
        return "CPU limits are kept by pinning and memory limits by polling (no writable cgroup)"
    finally:
        groups.remove()


class Lease:
    """The lease, by a file that is touched while a manager is there; only changes count, so no clock can confuse it.

    Args:
        trial: `contact` is the file, `lease_s` how long it may stay as it is; None: there is no lease.
    """

    def __init__(self, trial: Mapping[str, object]) -> None:
        lease_s = trial.get("lease_s")
        self.lease_s = float(lease_s) if isinstance(lease_s, (int, float)) else None
        self._contact = str(trial.get("contact"))
        self._seen = -1
        self._seen_s = time.monotonic()

    def is_over(self) -> bool:
        """Tell whether nothing was heard for too long. A file that cannot be looked at counts as unchanged."""
        if self.lease_s is None:
            return False
        try:
            seen = os.stat(self._contact).st_mtime_ns
        except OSError:
            seen = self._seen
        if seen != self._seen:
            self._seen = seen
            self._seen_s = time.monotonic()
        return time.monotonic() - self._seen_s > self.lease_s
