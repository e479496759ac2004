"""The store's file below SQLite: the kind of its file system, and open handles across a fork of the process.

The store's open handles across a fork of the process. SQLite keeps a table of the locks that this process holds. A
forked child inherits the table and not the locks, so it would read and write without any, and the last of the others
to leave would remove the log under it. So each handle is locked while the process forks, and the child closes it; its
next use opens it again.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from jupyter_autotrain.agent import system

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
    """Return the type of the file system that holds `path`; "" where the system does not tell.

    Args:
        path: A file or folder.
        mounted: Mount points and types; those of this machine when not given.
    """
    deepest = -1
    found = ""
    target = path.parent.resolve()
    depths = {str(folder): len(folder.parts) for folder in (target, *target.parents)}
    for point, kind in system.filesystems() if mounted is None else mounted:
        depth = depths.get(point, -1)
        if depth >= max(deepest, 0):
            deepest = depth
            found = kind
    return found


class ForkAware(Protocol):
    """A handle that is locked while the process forks."""

    lock: threading.RLock

    def disconnect(self) -> None:
        """Close the connection; the next use opens another."""


class OpenDatabases:
    """All open handles of this process."""

    def __init__(self) -> None:
        self._handles: weakref.WeakSet[ForkAware] = weakref.WeakSet()
        self._locked: list[ForkAware] = []
        os.register_at_fork(
            before=self._before_fork, after_in_parent=self._after_in_parent, after_in_child=self._after_in_child
        )

    def add(self, handle: ForkAware) -> None:
        """Lock a handle during each fork, as long as it exists."""
        self._handles.add(handle)

    def _before_fork(self) -> None:
        locked = list(self._handles)
        for handle in locked:
            handle.lock.acquire()
        self._locked = locked

    def _after_in_parent(self) -> None:
        for handle in self._locked:
            handle.lock.release()
        self._locked = []

    def _after_in_child(self) -> None:
        for handle in self._locked:
            handle.disconnect()
        self._after_in_parent()


OPEN_DATABASES: Final = OpenDatabases()
"""One for the process, as the locks are its own."""
