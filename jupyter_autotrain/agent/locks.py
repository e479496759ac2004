"""Locks (flock) of processes at a place: on what is used, on what is to be removed, and for one at a time.

A lock ends with the process that holds it, and with all that it becomes. Some network file systems lock nothing: there
what is used counts as locked, and what cannot be locked counts as used, so nothing is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def use(path: str | os.PathLike[str]) -> int:
    """Lock a file or a folder together with others that use it; return the descriptor that holds the lock while open.

    Raises:
        OSError: It is gone.
    """
    fd = os.open(path, _FLAGS)
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


@contextlib.contextmanager
def used(path: str | os.PathLike[str]) -> Iterator[None]:
    """Use a file or a folder meanwhile; errors as `use`."""
    fd = use(path)
    try:
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def unused(path: str | os.PathLike[str]) -> Iterator[bool]:
    """Keep users off a file or a folder meanwhile, and yield True; yield False where somebody uses it.

    Raises:
        OSError: It is gone.
    """
    fd = os.open(path, _FLAGS)
    try:
        yield _is_taken(fd)
    finally:
        os.close(fd)


def _is_taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def alone(path: str | os.PathLike[str], *, is_needed: bool = False) -> Iterator[None]:
    """Hold the lock of a file, which is made where it is missing: one process at a time.

    Args:
        path: The file.
        is_needed: Whether a file system that locks nothing is an error; else all go on there.

    Raises:
        OSError: It cannot be made, or be locked where that is needed.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError:
            if is_needed:
                raise
        yield
    finally:
        os.close(fd)
