"""Where control groups are mounted, and which of them a process is in (proc(5): `mountinfo`, `cgroup`)."""

from __future__ import annotations

from jupyter_autotrain.core import system


def read(*parts: str) -> str:
    """The text of a file of the kernel."""
    with open("/".join(parts), encoding="utf-8") as file:
        return file.read()


def of_process(pid: int | str, mountinfo: str | None = None, own: str | None = None) -> dict[str, str]:
    """Controller (or "" for version 2) -> the folder of the group that a process is in.

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
    """Controller (or "" for version 2) -> (mount point, the group that is mounted there)."""
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
    """Controller (or "") -> the folder of a process's group, from the text of its `cgroup` file."""
    found = {}
    for line in own.splitlines():
        number, controllers, path = line.split(":", 2)
        for name in controllers.split(",") if number != "0" else [""]:
            if name in mounted:
                point, root = mounted[name]
                inside = path[len(root) :] if root != "/" and path.startswith(root) else path
                found[name] = f"{point}/{inside.strip('/')}".rstrip("/")
    return found
