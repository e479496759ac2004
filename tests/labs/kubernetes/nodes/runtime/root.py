"""The file system that a container sees: the machine's own under an overlay, with the pod's volumes in it."""

from __future__ import annotations

import os
import stat
from typing import TypedDict

from tests.labs.kubernetes.nodes.runtime import syscalls

_SHARED_MEMORY = "64m"  # as container runtimes give
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}


class Mount(TypedDict):
    """A file or folder of the machine as a container sees it; in memory of the node where the node makes it."""

    source: str
    target: str
    read_only: bool
    made_by_node: bool


def make_mask(folder: str, hidden: list[str]) -> None:
    """Make a layer of the overlay under which the contents of some folders of the machine cannot be seen."""
    for path in hidden:
        place = folder + path
        os.makedirs(place, exist_ok=True)
        os.chmod(place, 0o777)
        os.setxattr(place, "trusted.overlay.opaque", b"y")


def make_root(scratch: str, name: str, shown: list[str], empty: list[str]) -> str:
    """Mount the root of a container, in a mount namespace of its own.

    Args:
        scratch: Of the node, with the `mask`.
        name: Of the container on this node.
        shown: Folders of the machine that are seen though the mask hides them.
        empty: Folders that are empty though they are in shown ones.
    """
    folder = f"{scratch}/{name}"
    for part in ("upper", "work", "root"):
        os.makedirs(f"{folder}/{part}", exist_ok=True)
    syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    layers = f"lowerdir={scratch}/mask:/,upperdir={folder}/upper,workdir={folder}/work"
    root = f"{folder}/root"
    syscalls.mount("overlay", root, "overlay", data=layers)
    for path in shown:
        os.makedirs(root + path, exist_ok=True)
        syscalls.bind(path, root + path, read_only=True)
    nothing = f"{scratch}/nothing"
    for path in empty:
        if os.path.isdir(root + path):
            syscalls.bind(nothing, root + path, read_only=True)
    return root


def mount_system(root: str) -> None:
    """Mount what every container has: processes, devices, shared memory."""
    syscalls.mount("proc", root + "/proc", "proc")
    syscalls.bind("/sys", root + "/sys")
    syscalls.mount("dev", root + "/dev", "tmpfs", data="mode=0755")
    for name, (major, minor) in _DEVICES.items():
        os.mknod(f"{root}/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(major, minor))
        os.chmod(f"{root}/dev/{name}", 0o666)
    for name, target in _LINKS.items():
        os.symlink(target, f"{root}/dev/{name}")
    os.mkdir(root + "/dev/pts")
    syscalls.mount("devpts", root + "/dev/pts", "devpts", data="newinstance,ptmxmode=0666")
    os.symlink("pts/ptmx", root + "/dev/ptmx")
    os.mkdir(root + "/dev/shm")
    syscalls.mount("shm", root + "/dev/shm", "tmpfs", data=f"mode=1777,size={_SHARED_MEMORY}")


def mount_volumes(root: str, mounts: list[Mount]) -> None:
    """Mount files and folders at their places, which are made where the machine does not have them."""
    for found in sorted(mounts, key=lambda entry: entry["target"].count("/")):
        target = root + os.path.normpath(found["target"])
        if found["made_by_node"]:
            os.makedirs(found["source"], exist_ok=True)
            os.chmod(found["source"], 0o777)
        if os.path.isdir(found["source"]):
            os.makedirs(target, exist_ok=True)
        else:
            _make_file(target)
        syscalls.bind(found["source"], target, read_only=found["read_only"])


def _make_file(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.islink(path):  # /etc/resolv.conf often is one
        os.unlink(path)
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o644))
