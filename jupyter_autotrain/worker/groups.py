"""Control groups of one trial: limits that the kernel keeps, and the exact list of its processes.

Versions 1 and 2, where a folder can be made below the group we are in (version 2: or beside it, as systemd lets
a user do). Sources: the kernel's `cgroup-v1` and `cgroup-v2` admin guides; proc(5) for `mountinfo`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time

from jupyter_autotrain.core import disk
from jupyter_autotrain.core.process_identity import ProcessIdentity
from jupyter_autotrain.worker import mounts

_PERIOD_US = 100_000
_PREFIX = "autotrain-"  # then the maker's pid and birth, and a time


class Wanted:
    """What a trial may use; None means without limit."""

    def __init__(self, memory_bytes: int | None, cpus: float | None, processes: int) -> None:
        self.memory_bytes = memory_bytes
        self.cpus = cpus
        self.processes = processes

    def controllers(self) -> list[str]:
        """The controllers needed; `pids` always is: it bounds fork bombs and lists the members."""
        asked = {"pids": True, "memory": self.memory_bytes is not None, "cpu": self.cpus is not None}
        return [name for name, needed in asked.items() if needed]


def _write(value: object, *parts: str) -> bool:
    """Write one control file; False when it is refused or absent."""
    try:
        fd = os.open("/".join(parts), os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, str(value).encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


class Groups:
    """The folders made for one trial. None at all is fine: then nothing is limited by the kernel."""

    def __init__(self, version: int, folders: dict[str, str]) -> None:
        self.version = version  # controller -> folder
        self.folders = folders
        self.limited: set[str] = set()

    def paths(self) -> list[str]:
        """The folders, for `status.json`: whoever finds a dead supervisor cleans them up."""
        return sorted(set(self.folders.values()))

    def limit(self, wanted: Wanted) -> None:
        """Write the limits; `limited` then holds those that act."""
        for name in self.folders:
            if getattr(self, f"_limit_{name}")(wanted):
                self.limited.add(name)

    def _limit_pids(self, wanted: Wanted) -> bool:
        return _write(wanted.processes, self.folders["pids"], "pids.max")

    def _limit_memory(self, wanted: Wanted) -> bool:
        folder = self.folders["memory"]
        if self.version == 1:
            done = _write(wanted.memory_bytes, folder, "memory.limit_in_bytes")
            _write(wanted.memory_bytes, folder, "memory.memsw.limit_in_bytes")
        else:
            done = _write(wanted.memory_bytes, folder, "memory.max")
            _write(0, folder, "memory.swap.max")
            _write(1, folder, "memory.oom.group")
        return done

    def _limit_cpu(self, wanted: Wanted) -> bool:
        quota = max(1000, int((wanted.cpus or 0.0) * _PERIOD_US))
        if self.version == 2:
            return _write(f"{quota} {_PERIOD_US}", self.folders["cpu"], "cpu.max")
        _write(_PERIOD_US, self.folders["cpu"], "cpu.cfs_period_us")
        return _write(quota, self.folders["cpu"], "cpu.cfs_quota_us")

    def join(self) -> bool:
        """Move the calling process in; its children follow. False when the kernel refuses."""
        joined = [_write(0, folder, "cgroup.procs") for folder in self.paths()]  # all of them, also after a refusal
        return all(joined)

    def members(self) -> set[int]:
        """The processes inside."""
        return members(self.paths())

    def seal(self) -> None:
        """Forbid new processes, so that killing comes to an end even for a fork bomb."""
        if "pids" in self.folders:
            _write(0, self.folders["pids"], "pids.max")

    def oom_kills(self) -> int:
        """How often the kernel killed a member because the memory limit was reached."""
        if "memory" not in self.folders:
            return 0
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        try:
            lines = mounts.read(self.folders["memory"], name).splitlines()
        except OSError:
            return 0
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def peak_bytes(self) -> int | None:
        """The most memory the members held at once, where the kernel counts it."""
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        try:
            return int(mounts.read(self.folders["memory"], name)) if "memory" in self.folders else None
        except OSError:
            return None

    def remove(self) -> None:
        """Give the folders back."""
        remove(self.paths())


def follow(pid: int) -> bool:
    """Move the calling process into the groups of another one; False when the kernel refuses one of them."""
    try:
        homes = mounts.homes(mounts.mounts(mounts.read("/proc/self/mountinfo")), mounts.read(f"/proc/{pid}/cgroup"))
    except OSError:
        return False
    joined = [_write(0, home, "cgroup.procs") for home in set(homes.values())]
    return all(joined)


def members(folders: list[str]) -> set[int]:
    """The processes in these groups.

    Raises:
        OSError: It cannot be told just now.
    """
    found: set[int] = set()
    for folder in folders:
        try:
            found.update(int(line) for line in mounts.read(folder, "cgroup.procs").split())
        except OSError as error:
            if disk.is_for_now(error.errno):
                raise
            continue  # it is gone already
    return found


def remove(folders: list[str]) -> None:
    """Remove empty groups; the kernel may need a moment after the last member is gone."""
    for folder in folders:
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            try:
                os.rmdir(folder)
            except OSError as error:
                if error.errno == errno.EBUSY:
                    time.sleep(0.005)
                    continue
            break


def make(wanted: Wanted, mountinfo: str | None = None, own: str | None = None) -> Groups:
    """Make the groups a trial needs, as far as this machine lets us, and write the limits.

    Args:
        wanted: The limits.
        mountinfo: Text of `/proc/self/mountinfo`; read when not given.
        own: Text of `/proc/self/cgroup`; read when not given.
    """
    try:
        mounted = mounts.mounts(mountinfo if mountinfo is not None else mounts.read("/proc/self/mountinfo"))
        homes = mounts.homes(mounted, own if own is not None else mounts.read("/proc/self/cgroup"))
    except OSError:
        return Groups(1, {})
    name = f"{_PREFIX}{os.getpid()}-{_born(os.getpid())}-{time.time_ns()}"
    groups = _make_v1(homes, wanted, name)
    if not groups.folders and "" in homes:
        groups = _make_v2(homes[""], wanted, name)
    groups.limit(wanted)
    return groups


def _make(folder: str) -> bool:
    try:
        os.mkdir(folder, 0o755)
    except OSError:
        return False
    return True


def _make_v1(homes: dict[str, str], wanted: Wanted, name: str) -> Groups:
    folders = {}
    for controller in wanted.controllers():
        if controller in homes and _make(f"{homes[controller]}/{name}"):
            folders[controller] = f"{homes[controller]}/{name}"
    return Groups(1, folders)


def _make_v2(home: str, wanted: Wanted, name: str) -> Groups:
    needed = wanted.controllers()
    best = Groups(2, {})
    for base in (home, home.rpartition("/")[0]):
        for controller in needed:
            _write(f"+{controller}", base, "cgroup.subtree_control")
        try:
            enabled = [c for c in needed if c in mounts.read(base, "cgroup.subtree_control").split()]
        except OSError:
            continue
        folder = f"{base}/{name}"
        if len(enabled) > len(best.folders) and _make(folder):
            best.remove()
            best = Groups(2, dict.fromkeys(enabled, folder))
    return best


def is_made_by(folder: str, maker: ProcessIdentity) -> bool:
    """True when this process made the group."""
    name = folder.rpartition("/")[2]
    return name.startswith(f"{_PREFIX}{maker.pid}-{_hundredths(maker)}-")


def _hundredths(process: ProcessIdentity) -> int:
    return round(process.created_s * 100)


def _born(pid: int) -> int:
    """When a process began, in hundredths of a second since boot; -1 when it is gone."""
    try:
        return _hundredths(ProcessIdentity.of(pid))
    except OSError:
        return -1


def sweep() -> None:
    """Remove empty groups whose maker was killed before it could tell anyone of them."""
    try:
        homes = mounts.homes(mounts.mounts(mounts.read("/proc/self/mountinfo")), mounts.read("/proc/self/cgroup"))
    except OSError:
        return
    for base in {*homes.values(), *(home.rpartition("/")[0] for home in homes.values())}:
        for name in os.listdir(base) if os.path.isdir(base) else ():
            pid, _, rest = name.removeprefix(_PREFIX).partition("-")
            if name.startswith(_PREFIX) and pid.isdigit() and str(_born(int(pid))) != rest.partition("-")[0]:
                with contextlib.suppress(OSError):  # it still has members
                    os.rmdir(f"{base}/{name}")
