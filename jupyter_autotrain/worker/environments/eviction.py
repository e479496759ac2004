"""Which virtual environments stay at a place: a bounded number, the least recently used go, never one in use.

Who uses an environment holds a lock (flock) on its file `complete.json` while it lives, over every program that it
becomes. Runs on the trial's side: only the standard library of Python 3.9.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil

COMPLETE = "complete.json"  # written last; its time is when the environment was used last
MOST = 10
_OPEN = os.O_RDONLY | os.O_NOFOLLOW


def hold(folder: str) -> bool:
    """Keep an environment there while this process lives, whatever it becomes; False where it is not complete."""
    path = os.path.join(folder, COMPLETE)
    try:
        fd = os.open(path, _OPEN)
    except FileNotFoundError:
        return False
    with contextlib.suppress(OSError):  # some network file systems lock nothing
        fcntl.flock(fd, fcntl.LOCK_SH)
    if not os.path.exists(path):  # it was removed just before the lock
        os.close(fd)
        return False
    os.utime(path)
    os.set_inheritable(fd, True)
    return True


def unused(root: str) -> list[tuple[str, int]]:
    """The environments that nobody uses, the least recently used first: their names, and bytes.

    Args:
        root: The folder of all virtual environments at this place.
    """
    return [(name, _size_bytes(os.path.join(root, name))) for name in _by_last_use(root) if not _is_used(root, name)]


def make_room(root: str, most: int = MOST) -> None:
    """Before another one is made, remove what nobody uses until there is room for it; what is used stays.

    Args:
        root: The folder of all virtual environments at this place.
        most: How many may be there then.
    """
    names = _by_last_use(root)
    surplus = len(names) + 1 - most
    for name in names:
        if surplus > 0 and remove(root, name):
            surplus -= 1


def remove(root: str, name: str) -> bool:
    """Remove an environment; False where somebody uses it, or it is gone."""
    folder = os.path.join(root, name)
    path = os.path.join(folder, COMPLETE)
    try:
        fd = os.open(path, _OPEN)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)  # nobody begins to use it from here on
    except OSError:
        return False
    finally:
        os.close(fd)
    shutil.rmtree(folder, ignore_errors=True)
    return True


def _by_last_use(root: str) -> list[str]:
    """The names of the complete ones."""
    times = {}
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(root):
            with contextlib.suppress(OSError):
                times[name] = os.stat(os.path.join(root, name, COMPLETE)).st_mtime_ns
    return sorted(times, key=lambda name: times[name])


def _is_used(root: str, name: str) -> bool:
    try:
        fd = os.open(os.path.join(root, name, COMPLETE), _OPEN)
    except OSError:
        return True  # it is being removed
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _size_bytes(folder: str) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size
    return total
