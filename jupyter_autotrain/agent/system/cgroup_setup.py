"""The making of a trial's control groups, as far as this machine allows, and the removal of abandoned ones.

A group is a folder below the one that we are in; in version 2 also beside it, as systemd lets a user do.
"""

from __future__ import annotations

import contextlib
import os
import time

from jupyter_autotrain.agent.system import cgroups
from jupyter_autotrain.agent.system.cgroups import CgroupLimits, ControlGroups, write_control_file
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity

_PREFIX = "autotrain-"  # then the maker's pid and start, and a time


def create(wanted: CgroupLimits, mountinfo: str | None = None, own: str | None = None) -> ControlGroups:
    """Make the groups a trial needs and write the limits; make none where that is not allowed.

    Args:
        wanted: The limits.
        mountinfo: See `cgroup_mounts.groups_of_process`.
        own: As above.
    """
    try:
        own_groups = cgroups.groups_of_process("self", mountinfo, own)
    except OSError:
        return ControlGroups(1, {})
    name = f"{_PREFIX}{os.getpid()}-{_start_of(os.getpid())}-{time.time_ns()}"
    groups = _create_v1(own_groups, wanted, name)
    if not groups.folders and "" in own_groups:
        groups = _create_v2(own_groups[""], wanted, name)
    groups.limit(wanted)
    return groups


def _make_folder(folder: str) -> bool:
    try:
        os.mkdir(folder, 0o755)
    except OSError:
        return False
    return True


def _create_v1(own_groups: dict[str, str], wanted: CgroupLimits, name: str) -> ControlGroups:
    folders = {}
    for controller in wanted.controllers():
        if controller in own_groups and _make_folder(f"{own_groups[controller]}/{name}"):
            folders[controller] = f"{own_groups[controller]}/{name}"
    return ControlGroups(1, folders)


def _create_v2(own_group: str, wanted: CgroupLimits, name: str) -> ControlGroups:
    needed = wanted.controllers()
    best = ControlGroups(2, {})
    for base in (own_group, own_group.rpartition("/")[0]):
        for controller in needed:
            write_control_file(f"+{controller}", base, "cgroup.subtree_control")
        try:
            enabled = cgroups.read_kernel_file(base, "cgroup.subtree_control").split()
        except OSError:
            continue
        usable = [controller for controller in needed if controller in enabled]
        folder = f"{base}/{name}"
        if len(usable) > len(best.folders) and _make_folder(folder):
            best.remove()
            best = ControlGroups(2, dict.fromkeys(usable, folder))
    return best


def is_made_by(folder: str, maker: ProcessIdentity) -> bool:
    """Tell whether this process made the group."""
    name = folder.rpartition("/")[2]
    return name.startswith(f"{_PREFIX}{maker.pid}-{_hundredths(maker)}-")


def _hundredths(process: ProcessIdentity) -> int:
    return round(process.created_s * 100)


def _start_of(pid: int) -> int:
    """Return the time when a process began, in hundredths of a second since boot; -1 when it has ended."""
    try:
        return _hundredths(ProcessIdentity.of(pid))
    except OSError:
        return -1


def remove_stale() -> None:
    """Remove empty groups whose maker was killed before it wrote down their names."""
    try:
        own_groups = cgroups.groups_of_process("self")
    except OSError:
        return
    beside = [group.rpartition("/")[0] for group in own_groups.values()]
    for base in {*own_groups.values(), *beside}:
        for name in os.listdir(base) if os.path.isdir(base) else ():
            if _is_stale(name):
                with contextlib.suppress(OSError):  # it still has members
                    os.rmdir(f"{base}/{name}")


def _is_stale(name: str) -> bool:
    pid, _, rest = name.removeprefix(_PREFIX).partition("-")
    if not name.startswith(_PREFIX) or not pid.isdigit():
        return False
    return str(_start_of(int(pid))) != rest.partition("-")[0]
