"""The cache of code on a host: the least recently used goes first, and code that a living process uses stays.

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
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from jupyter_autotrain.agent import caches, locks, wire

_OWN = Path(__file__).parents[3]  # the code of this agent
_FOLDERS = ("bundles", "agents", wire.CHECKPOINTS)


def hold_own() -> int:
    """Keep the code of this agent there while the process lives; return the descriptor that must stay open.

    Raises:
        OSError: It is gone.
    """
    return locks.use(_OWN)


class CodeCache:
    """The code below one folder; safe for several processes.

    Args:
        root: The folder of everything that is ours on the host.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._blobs = root / "blobs"
        self._users = caches.CacheUsers(str(root))

    def use(self, folders: Sequence[Path], directory: Path) -> bool:
        """Note that a trial uses folders and this agent's code, so that all stay; return False where a folder is gone.

        Raises:
            OSError: It cannot be noted.
        """
        with locks.used(self._blobs):
            for folder in (*folders, _OWN):
                self._users.add(folder.name, str(directory))
                with contextlib.suppress(FileNotFoundError):
                    os.utime(folder)
            return all(folder.is_dir() for folder in folders)

    def make_room(self, folder: str, size_bytes: int, limit_bytes: int) -> None:
        """Remove unused code until a folder that is to come fits; code in use stays, whatever the limit.

        This does nothing where the folder is there, or while others send: the next one makes room.

        Args:
            folder: Its kind and digest, as `bundles/DIGEST`.
            size_bytes: What it needs.
            limit_bytes: How much the cache may hold.
        """
        if (self._root / folder).is_dir():
            return
        with contextlib.suppress(OSError), locks.unused(self._blobs) as is_free:
            if not is_free:
                return
            for kind in _FOLDERS:
                for rest in (self._root / kind).glob("*.*"):  # of a removal or a receiver that was killed
                    shutil.rmtree(rest, ignore_errors=True)
            sizes = {entry: caches.size_bytes(entry) for entry in self._by_last_use()}
            held_bytes = sum(sizes.values())
            for entry, entry_bytes in sizes.items():
                if held_bytes + size_bytes <= limit_bytes:
                    return
                if not self._is_used(Path(entry)):
                    caches.remove(entry)
                    held_bytes -= entry_bytes

    def _by_last_use(self) -> list[str]:
        found: list[Path] = []
        for kind in (*_FOLDERS, "blobs"):
            found += (self._root / kind).glob("*")
        return caches.by_last_use(map(str, found))

    def _is_used(self, entry: Path) -> bool:
        if entry.parent.name == "blobs":
            return False  # folders hold copies, and nobody receives while room is made
        if self._users.is_used(entry.name):
            return True
        return entry.parent.name == "agents" and _runs(entry)


def _runs(agent: Path) -> bool:
    """Tell whether an agent runs this code, or may be about to."""
    if time.time() - agent.lstat().st_mtime < caches.START_S:
        return True
    with locks.unused(agent) as is_unused:
        return not is_unused
