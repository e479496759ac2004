"""The cache of code on a host; what was used least recently goes first, and nothing that a living process uses.

```
ROOT/bundles/DIGEST/      the code of an experiment; its time is when it was used last
ROOT/checkpoints/DIGEST/  those of an attempt elsewhere, for the next one here
ROOT/agents/DIGEST/       an agent's own code; locked (flock) while an agent runs it
ROOT/blobs/SHA256         a file that was received; the folder is locked while files are, and while room is made
ROOT/users/DIGEST/NAME    a trial that uses one of these folders
```

Runs on a host: only the standard library of Python 3.9.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from jupyter_autotrain.core import wire
from jupyter_autotrain.worker.cache_users import START_S, CacheUsers

_OWN = Path(__file__).parents[3]  # the code of this agent
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDERS = ("bundles", "agents", wire.CHECKPOINTS)
_REMOVED = ".removed-"


def hold_own() -> int:
    """Keep the code of this agent there while the process lives; gives what must stay open.

    Raises:
        OSError: It is gone.
    """
    fd = os.open(_OWN, _FOLDER)
    with contextlib.suppress(OSError):  # some network file systems lock nothing
        fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


class CodeCache:
    """The code below one folder; safe for several processes.

    Args:
        root: The folder of everything that is ours on the host.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._users = CacheUsers(str(root))

    def use(self, folders: Sequence[Path], directory: Path) -> bool:
        """Note that a trial uses folders and this agent's code, so that all stay; False where a folder is gone.

        Raises:
            OSError: It cannot be noted.
        """
        with self._locked(fcntl.LOCK_SH):
            for folder in (*folders, _OWN):
                self._users.add(folder.name, str(directory))
                with contextlib.suppress(FileNotFoundError):
                    os.utime(folder)
            return all(folder.is_dir() for folder in folders)

    def make_room(self, folder: str, size_bytes: int, limit_bytes: int) -> None:
        """Before a folder comes, remove what nothing uses until it fits; what is used stays, whatever the limit.

        Does nothing where the folder is there, or while others send: the next one makes room.

        Args:
            folder: Its kind and digest, as `bundles/DIGEST`.
            size_bytes: What it needs.
            limit_bytes: How much the cache may hold.
        """
        if (self._root / folder).is_dir():
            return
        with contextlib.suppress(OSError), self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
            self._remove_rests()
            sizes = {entry: _size_bytes(entry) for entry in self._by_last_use()}
            held_bytes = sum(sizes.values())
            for entry, entry_bytes in sizes.items():
                if held_bytes + size_bytes <= limit_bytes:
                    return
                if not self._is_used(entry):
                    _remove(entry)
                    held_bytes -= entry_bytes

    @contextlib.contextmanager
    def _locked(self, operation: int) -> Iterator[None]:
        fd = os.open(self._root / "blobs", _FOLDER)
        try:
            try:
                fcntl.flock(fd, operation)
            except OSError:
                if operation != fcntl.LOCK_SH:  # where nothing can be locked nothing is removed
                    raise
            yield
        finally:
            os.close(fd)

    def _by_last_use(self) -> list[Path]:
        found = []
        for kind in (*_FOLDERS, "blobs"):
            with contextlib.suppress(FileNotFoundError):
                found += [Path(entry.path) for entry in os.scandir(self._root / kind)]
        return sorted(found, key=_last_use_ns)

    def _remove_rests(self) -> None:
        """Remove what an earlier removal, or a receiver that was killed, has left."""
        for kind in _FOLDERS:
            for entry in (self._root / kind).glob("*.*"):
                shutil.rmtree(entry, ignore_errors=True)

    def _is_used(self, entry: Path) -> bool:
        if entry.parent.name == "blobs":
            return False  # folders hold copies, and nobody receives while room is made
        if self._users.is_used(entry.name):
            return True
        return entry.parent.name == "agents" and _runs(entry)


def _runs(agent: Path) -> bool:
    """Whether an agent runs this code, or may be about to."""
    if time.time_ns() - _last_use_ns(agent) < START_S * 1e9:
        return True
    fd = os.open(agent, _FOLDER)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _last_use_ns(entry: Path) -> int:
    return entry.lstat().st_mtime_ns


def _size_bytes(entry: Path) -> int:
    if not entry.is_dir():
        return entry.lstat().st_size
    return sum(path.lstat().st_size for path in entry.rglob("*"))


def _remove(entry: Path) -> None:
    """A folder is never there in part."""
    if entry.is_dir():
        removed = entry.with_name(f"{entry.name}{_REMOVED}{os.getpid()}")
        entry.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)
