"""The virtual environments that stay at a place: a bounded number. The least recently used go, never one in use.

A process that uses an environment holds a lock (flock) on its file `complete.json` while it lives, over every program
that it becomes. Runs on the trial's side: only the standard library of Python 3.9.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil

from jupyter_autotrain.agent import caches, locks

COMPLETE = "complete.json"  # written last; its time is when the environment was used last
MOST = 10


def hold(folder: str) -> bool:
    """Keep an environment there while this process lives, whatever it becomes.

    Returns False where the environment is not complete.
    """
    path = os.path.join(folder, COMPLETE)
    try:
        fd = locks.use(path)
    except FileNotFoundError:
        return False
    if not os.path.exists(path):  # it was removed just before the lock
        os.close(fd)
        return False
    os.utime(path)
    os.set_inheritable(fd, True)
    return True


def unused(root: str) -> list[tuple[str, int]]:
    """Return the environments that nobody uses, the least recently used first: their names, and bytes.

    Args:
        root: The folder of all virtual environments at this place.
    """
    return [
        (name, caches.size_bytes(os.path.join(root, name))) for name in _by_last_use(root) if not _is_used(root, name)
    ]


def make_room(root: str, most: int = MOST) -> None:
    """Remove unused environments until there is room for another one; those in use stay.

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
    """Remove an environment; return False where somebody uses it, or it is gone."""
    folder = os.path.join(root, name)
    path = os.path.join(folder, COMPLETE)
    with contextlib.suppress(OSError), locks.unused(path) as is_unused:
        if is_unused:
            os.unlink(path)  # nobody begins to use it from here on
            shutil.rmtree(folder, ignore_errors=True)
            return True
    return False


def _by_last_use(root: str) -> list[str]:
    """Return the names of the complete environments, the least recently used first."""
    complete = glob.glob(os.path.join(glob.escape(root), "*", COMPLETE))
    return [os.path.basename(os.path.dirname(path)) for path in caches.by_last_use(complete)]


def _is_used(root: str, name: str) -> bool:
    with contextlib.suppress(OSError), locks.unused(os.path.join(root, name, COMPLETE)) as is_unused:
        return not is_unused
    return True  # it is being removed
