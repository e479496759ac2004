"""Where control groups are mounted, and which of them we are in (proc(5): `mountinfo`; the kernel's cgroup guides)."""

from __future__ import annotations


def read(*parts: str) -> str:
    """The text of a file of the kernel."""
    with open("/".join(parts), encoding="utf-8") as file:
        return file.read()


def mounts(mountinfo: str) -> dict[str, tuple[str, str]]:
    """Controller (or "" for version 2) -> (mount point, the group that is mounted there)."""
    found: dict[str, tuple[str, str]] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        kind = right.split()
        if kind[:1] == ["cgroup2"]:
            found[""] = (fields[4], fields[3])
        elif kind[:1] == ["cgroup"]:
            found.update(dict.fromkeys(kind[-1].split(","), (fields[4], fields[3])))
    return found


def homes(mounted: dict[str, tuple[str, str]], own: str) -> dict[str, str]:
    """Controller (or "") -> the folder of the group that we are in."""
    found = {}
    for line in own.splitlines():
        number, controllers, path = line.split(":", 2)
        for name in controllers.split(",") if number != "0" else [""]:
            if name in mounted:
                point, root = mounted[name]
                inside = path[len(root) :] if root != "/" and path.startswith(root) else path
                found[name] = f"{point}/{inside.strip('/')}".rstrip("/")
    return found
