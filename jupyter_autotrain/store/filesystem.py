"""Which kind of file system holds a path."""

from __future__ import annotations

from pathlib import Path
from typing import Final

# Shared memory, which the write-ahead log needs, does not reach other machines through these.
NETWORK_FILESYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "beegfs", "gpfs", "ceph", "glusterfs", "afs", "9p", "fuse.sshfs"}
)
_MOUNTS: Final = Path("/proc/self/mountinfo")


def filesystem_of(path: Path, mounts: Path = _MOUNTS) -> str:
    """The type of the file system that holds `path`; "" where the system does not tell."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    best = -1
    kind = ""
    target = path.parent.resolve()
    for line in lines:
        left, _, right = line.partition(" - ")
        point = Path(left.split()[4].replace("\\040", " "))
        if target.is_relative_to(point) and len(point.parts) >= best:
            best = len(point.parts)
            kind = right.split()[0]
    return kind
