"""The eviction from the caches of a place: what is used stays, the least recently used goes first, never in part.

`ROOT/users/DIGEST/NAME` is a trial that uses an entry of the cache ROOT: a file with its directory's path. Runs on the
trial's side: only the standard library of Python 3.9.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import time
from collections.abc import Iterable, Iterator

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.trial import trial_lock

START_S = 600.0  # a trial that is to use an entry has begun by then
_REMOVED = ".removed"


class CacheUsers:
    """The users of the entries of one cache; safe for several processes.

    Args:
        root: The folder of the cache.
    """

    def __init__(self, root: str) -> None:
        self._folder = f"{root}/users"

    def add(self, digest: str, directory: str) -> None:
        """Note that a trial uses an entry: it does while its supervisor lives, or has still to begin.

        Raises:
            OSError: It cannot be noted.
        """
        users = f"{self._folder}/{digest}"
        os.makedirs(users, mode=0o700, exist_ok=True)
        user = f"{users}/{directory.strip('/').replace('/', '~')[-200:]}"
        wire.write_atomically(user, directory.encode(), sync=False)

    def is_used(self, digest: str) -> bool:
        """Tell whether a trial uses an entry; notes of trials that have ended are removed."""
        users = f"{self._folder}/{digest}"
        names = os.listdir(users) if os.path.isdir(users) else []
        living = [name for name in names if self._lives(f"{users}/{name}")]
        return bool(living)

    def _lives(self, user: str) -> bool:
        """Tell whether the trial of this note runs, or has still to begin; else remove the note."""
        with contextlib.suppress(OSError):
            with open(user, encoding="utf-8") as file:
                directory = file.read()
            if trial_lock.is_held(directory):
                return True
            has_begun = os.path.lexists(f"{directory}/{wire.STATUS_FILE}")
            if not has_begun and time.time() - os.stat(user).st_mtime < START_S:
                return True
            os.unlink(user)
        return False


def by_last_use(paths: Iterable[str]) -> list[str]:
    """Return the paths that are there, the one first whose time, that of its last use, is the oldest."""
    times = {}
    for path in paths:
        with contextlib.suppress(OSError):
            times[path] = os.lstat(path).st_mtime_ns
    return sorted(times, key=lambda path: times[path])


def size_bytes(path: str, besides: str = "") -> int:
    """Return the bytes of a file, or of all files below a folder; one with several names counts once.

    Args:
        path: The file or folder.
        besides: What the names of files that do not count have in them; "": all count.
    """
    seen: dict[tuple[int, int], int] = {}
    for file in _files(path) if os.path.isdir(path) else (path,):
        with contextlib.suppress(OSError):
            status = os.lstat(file)
            if not besides or besides not in os.path.basename(file):
                seen[(status.st_dev, status.st_ino)] = status.st_size
    return sum(seen.values())


def _files(folder: str) -> Iterator[str]:
    for at, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(at, name)


def remove(entry: str, aside: str = "") -> None:
    """Remove a file or a folder that may be gone; a folder is never there in part.

    Args:
        entry: The file or folder.
        aside: Another folder of that disk, where a folder goes first; "": beside itself.
    """
    removed = f"{os.path.join(aside, os.path.basename(entry)) if aside else entry}{_REMOVED}-{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        if os.path.isdir(entry):
            os.rename(entry, removed)
        else:
            os.unlink(entry)
    shutil.rmtree(removed, ignore_errors=True)


def remove_rests(folder: str) -> None:
    """Remove the rests of removals in a folder whose processes were killed."""
    for rest in glob.glob(f"{glob.escape(folder)}/*{_REMOVED}*"):
        shutil.rmtree(rest, ignore_errors=True)
