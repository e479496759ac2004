"""The writing of data through to the disk itself."""

from __future__ import annotations

import fcntl
import os


def sync_path(path: str | os.PathLike[str]) -> None:
    """Write the content of a file or folder to the disk itself.

    Raises:
        OSError: It cannot be opened or written.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync(fd)
    finally:
        os.close(fd)


def sync(fd: int) -> None:
    """Write a file's content to the disk itself. On macOS fsync(2) stops at the drive's cache (see fcntl(2) there)."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is None:
        os.fsync(fd)
        return
    try:
        fcntl.fcntl(fd, full_sync)
    except OSError:  # a file system that cannot
        os.fsync(fd)
