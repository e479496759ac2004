"""Control groups of one trial: limits that the kernel keeps, and the exact list of its processes.

Versions 1 and 2. Sources: the kernel's `cgroup-v1` and `cgroup-v2` admin guides. `cgroup_setup` makes them.

The groups that a process is in, and where they are mounted, come from `mountinfo` and `cgroup` of proc(5).
"""

from __future__ import annotations

import errno
import os
import time

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.system import disk

_PERIOD_US = 100_000


def read_kernel_file(*parts: str) -> str:
    """Return the text of a file of the kernel."""
    with open("/".join(parts), encoding="utf-8") as file:
        return file.read()


def groups_of_process(pid: int | str, mountinfo: str | None = None, own: str | None = None) -> dict[str, str]:
    """Return the folder of the group that a process is in, by controller ("" for version 2).

    Args:
        pid: The process; "self" for this one.
        mountinfo: Text of `mountinfo`; both are read when one is not given.
        own: Text of `cgroup`.

    Raises:
        OSError: One of them cannot be read.
    """
    if mountinfo is None or own is None:
        mountinfo, own = system.control_group_texts(pid)
    return parse_groups(own, parse_mounts(mountinfo))


def parse_mounts(mountinfo: str) -> dict[str, tuple[str, str]]:
    """Return the mount point and the group that is mounted there, by controller ("" for version 2)."""
    found: dict[str, tuple[str, str]] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        columns = left.split()
        kind = right.split()
        if kind[:1] == ["cgroup2"]:
            found[""] = (columns[4], columns[3])
        elif kind[:1] == ["cgroup"]:
            found.update(dict.fromkeys(kind[-1].split(","), (columns[4], columns[3])))
    return found


def parse_groups(own: str, mounted: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Return the folder of a process's group, by controller (or ""), from the text of its `cgroup` file."""
    found = {}
    for line in own.splitlines():
        number, controllers, path = line.split(":", 2)
        for name in controllers.split(",") if number != "0" else [""]:
            if name in mounted:
                point, root = mounted[name]
                inside = path[len(root) :] if root != "/" and path.startswith(root) else path
                found[name] = f"{point}/{inside.strip('/')}".rstrip("/")
    return found


class CgroupLimits:
    """The resources that a trial may use; None means without limit."""

    def __init__(self, memory_bytes: int | None, cpus: float | None, processes: int) -> None:
        self.memory_bytes = memory_bytes
        self.cpus = cpus
        self.processes = processes

    def controllers(self) -> list[str]:
        """Return the controllers needed; `pids` always is: it bounds fork bombs and lists the members."""
        needed = {"pids": True, "memory": self.memory_bytes is not None, "cpu": self.cpus is not None}
        return [name for name, is_needed in needed.items() if is_needed]


def write_control_file(value: object, *parts: str) -> bool:
    """Write one control file; return False when it is refused or absent."""
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


class ControlGroups:
    """The folders made for one trial. None at all is fine: then nothing is limited by the kernel."""

    def __init__(self, version: int, folders: dict[str, str]) -> None:
        self.version = version
        self.folders = folders  # by controller
        self.limited: set[str] = set()

    def paths(self) -> list[str]:
        """Return the folders, for `status.json`: they are removed when the supervisor is found dead."""
        return sorted(set(self.folders.values()))

    def limit(self, wanted: CgroupLimits) -> None:
        """Write the limits; `limited` then holds the controllers that act."""
        writers = {"pids": self._limit_pids, "memory": self._limit_memory, "cpu": self._limit_cpu}
        for name in self.folders:
            if writers[name](wanted):
                self.limited.add(name)

    def _limit_pids(self, wanted: CgroupLimits) -> bool:
        return write_control_file(wanted.processes, self.folders["pids"], "pids.max")

    def _limit_memory(self, wanted: CgroupLimits) -> bool:
        folder = self.folders["memory"]
        if self.version == 1:
            done = write_control_file(wanted.memory_bytes, folder, "memory.limit_in_bytes")
            write_control_file(wanted.memory_bytes, folder, "memory.memsw.limit_in_bytes")
        else:
            done = write_control_file(wanted.memory_bytes, folder, "memory.max")
            write_control_file(0, folder, "memory.swap.max")
            write_control_file(1, folder, "memory.oom.group")
        return done

    def _limit_cpu(self, wanted: CgroupLimits) -> bool:
        quota = max(1000, int((wanted.cpus or 0.0) * _PERIOD_US))
        if self.version == 2:
            return write_control_file(f"{quota} {_PERIOD_US}", self.folders["cpu"], "cpu.max")
        write_control_file(_PERIOD_US, self.folders["cpu"], "cpu.cfs_period_us")
        return write_control_file(quota, self.folders["cpu"], "cpu.cfs_quota_us")

    def join(self) -> bool:
        """Move the calling process in; its children follow. Return False when the kernel refuses."""
        joined = [
            write_control_file(0, folder, "cgroup.procs") for folder in self.paths()
        ]  # all of them, also after a refusal
        return all(joined)

    def members(self) -> set[int]:
        """Return the processes inside."""
        return members(self.paths())

    def forbid_new_processes(self) -> None:
        """Forbid new processes, so that killing ends even for a fork bomb."""
        if "pids" in self.folders:
            write_control_file(0, self.folders["pids"], "pids.max")

    def oom_kills(self) -> int:
        """Count the members that the kernel killed because the memory limit was reached."""
        if "memory" not in self.folders:
            return 0
        return _oom_kills(self.folders["memory"], self.version)

    def peak_bytes(self) -> int | None:
        """Return the most memory the members held at once, where the kernel counts it."""
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        try:
            return int(read_kernel_file(self.folders["memory"], name)) if "memory" in self.folders else None
        except OSError:
            return None

    def remove(self) -> None:
        """Remove the folders."""
        remove(self.paths())


def oom_kills_around() -> int:
    """Count the members of this process's own group that the kernel killed for its memory.

    Under version 1 that is the group of a container: there the kernel ends one process, and the container goes on.
    """
    try:
        folders = groups_of_process("self")
    except OSError:
        return 0
    return _oom_kills(folders["memory"], 1) if "memory" in folders else _oom_kills(folders.get("", ""), 2)


def _oom_kills(folder: str, version: int) -> int:
    try:
        lines = read_kernel_file(folder, "memory.oom_control" if version == 1 else "memory.events").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def join_groups_of(pid: int) -> bool:
    """Move the calling process into the groups of another one; return False when the kernel refuses one of them."""
    try:
        folders = groups_of_process(pid)
    except OSError:
        return False
    joined = [write_control_file(0, folder, "cgroup.procs") for folder in set(folders.values())]
    return all(joined)


def members(folders: list[str]) -> set[int]:
    """Return the processes in these groups.

    Raises:
        OSError: They cannot be listed just now.
    """
    found: set[int] = set()
    for folder in folders:
        try:
            found.update(map(int, read_kernel_file(folder, "cgroup.procs").split()))
        except OSError as error:
            if disk.is_for_now(error.errno):
                raise
            continue  # the group is removed already
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
