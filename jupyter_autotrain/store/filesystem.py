"""Which kind of file system holds a path."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jupyter_autotrain.core import system

# Shared memory, which the write-ahead log needs, does not reach other machines through these.
NETWORK_FILESYSTEMS: Final = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "lustre",
        "beegfs",
        "gpfs",
        "ceph",
        "glusterfs",
        "afs",
        "afpfs",
        "webdav",
        "9p",
        "fuse.sshfs",
    }
)


def filesystem_of(path: Path, mounted: Iterable[tuple[str, str]] | None = None) -> str:
    """The type of the file system that holds `path`; "" where the system does not tell.

    Args:
        path: A file or folder.
        mounted: Mount points and types; those of this machine when not given.
    """
    deepest = -1
    found = ""
    target = path.parent.resolve()
    for point, kind in system.filesystems() if mounted is None else mounted:
        depth = len(Path(point).parts)
        if target.is_relative_to(point) and depth >= deepest:
            deepest = depth
            found = kind
    return found
