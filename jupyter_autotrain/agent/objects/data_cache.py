"""The cache of data at a place: one write-protected folder per content; the least recently used goes first.

```
ROOT/folders/DIGEST/           the content; files 0400, folders 0700
ROOT/folders/DIGEST.json       {path: [size_bytes, mtime_ns]}; its own time is when it was used last
ROOT/users/DIGEST/NAME         a trial that uses it: holds the path of its trial directory
ROOT/blobs/SHA256              files that were received, of which folders hold hard links
ROOT/parts/                    downloads that are not complete, and what is being removed
ROOT/lock                      locked (flock) while room is made, and while an entry is taken into use
```

Runs on the trial's side: only the standard library of Python 3.9.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import time

from jupyter_autotrain.agent import caches, locks, wire
from jupyter_autotrain.agent.errors import DataError
from jupyter_autotrain.agent.sizes import format_bytes

DEFAULT_LIMIT_BYTES = 100_000_000_000
_PART = ".part-"
_PART_S = 86_400.0  # how long what was cut waits to be gone on with


class DataCache:
    """The cache below one folder; safe for several processes.

    Args:
        root: The folder; made when missing.
        limit_bytes: How much it may hold.
    """

    def __init__(self, root: str, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.root = root
        self._limit_bytes = limit_bytes
        self._users = caches.CacheUsers(root)
        for name in ("folders", "users", "blobs", "parts"):
            os.makedirs(f"{root}/{name}", mode=0o700, exist_ok=True)

    def folder(self, digest: str) -> str:
        """Return the path where the content of this digest lies, if it is there."""
        return f"{self.root}/folders/{digest}"

    def part(self, digest: str) -> str:
        """Return the path that a download is written to before it is complete."""
        return f"{self.root}/parts/{digest}{_PART}url"

    def use(self, digest: str, directory: str) -> bool:
        """Note that a trial uses an entry, so that it stays.

        Returns False when the entry is not there, or was damaged and is removed.

        Raises:
            DataError: It was written to, and another trial that runs uses it.
        """
        with locks.alone(f"{self.root}/lock"):  # what is found whole must not be removed before it is seen to be used
            is_used = self._users.is_used(digest)
            self._users.add(digest, directory)
            if self._is_whole(digest):
                os.utime(self._index(digest))
                return True
            if not os.path.exists(self._index(digest)) and is_used:
                return False  # another one is putting it here, maybe from another machine that has the same folders
            self._remove_damaged(digest, is_used=is_used)
            return False

    def _remove_damaged(self, digest: str, *, is_used: bool) -> None:
        if is_used:
            raise DataError(
                f"The data in {self.folder(digest)} was written to, and a trial that runs uses it.",
                "All trials share it, so they only read it.",
                "Copy it inside the cell before it is changed; stop that trial, then retry.",
            )
        self._remove(digest)
        self._remove_unlinked_blobs()

    def _index(self, digest: str) -> str:
        return f"{self.root}/folders/{digest}.json"

    def _is_whole(self, digest: str) -> bool:
        """Tell whether an entry is there with all its files, none of them written to since."""
        try:
            with open(self._index(digest), encoding="utf-8") as file:
                known = json.load(file)
            return os.path.isdir(self.folder(digest)) and known == self._files(digest)
        except (OSError, ValueError):
            return False

    def _files(self, digest: str) -> dict[str, list[int]]:
        found = {}
        for folder, _, names in os.walk(self.folder(digest)):
            for name in names:
                status = os.lstat(f"{folder}/{name}")
                found[os.path.relpath(f"{folder}/{name}", self.folder(digest))] = [status.st_size, status.st_mtime_ns]
        return found

    def name(self, digest: str, file_name: str) -> str:
        """Give the file that an entry holds this name too, and return its path.

        Raises:
            OSError: It cannot have it.
        """
        folder = self.folder(digest)
        path = f"{folder}/{file_name}"
        if not os.path.lexists(path):
            os.link(f"{folder}/{os.listdir(folder)[0]}", path)
            self.complete(digest)
        return path

    def complete(self, digest: str) -> None:
        """Take in the files that have been put into the entry's folder and were verified.

        Raises:
            OSError: It cannot be noted.
        """
        data = json.dumps(self._files(digest)).encode()
        wire.write_atomically(self._index(digest), data)

    def make_room(self, size_bytes: int) -> None:
        """Remove entries that no trial uses, oldest use first, until so much more fits.

        Raises:
            DataError: It cannot fit: by the limit, by what running trials use, or by the disk.
        """
        self._check_limit(size_bytes)
        with locks.alone(f"{self.root}/lock"):
            caches.remove_rests(f"{self.root}/parts")
            self._remove_unlinked_blobs()
            entries = self._by_last_use()
            used_bytes = self._size_bytes()
            while entries and (used_bytes + size_bytes > self._limit_bytes or not self._fits_disk(size_bytes)):
                self._remove(entries.pop(0))
                self._remove_unlinked_blobs()
                used_bytes = self._size_bytes()
        if used_bytes + size_bytes > self._limit_bytes:
            raise DataError(
                f"{format_bytes(used_bytes)} of the cache {self.root} are in use by trials that run.",
                f"{format_bytes(size_bytes)} more have to fit below its limit of {format_bytes(self._limit_bytes)}.",
                "Raise `data_cache_limit` in the profile, or retry when they have ended.",
            )
        if not self._fits_disk(size_bytes):
            raise DataError(
                f"The disk of {self.root} has {format_bytes(shutil.disk_usage(self.root).free)} free.",
                f"The data needs {format_bytes(size_bytes)}.",
                "Free some of it, or choose a folder on another disk in the profile.",
            )

    def room_bytes(self) -> int:
        """Return the bytes that it could hold at most, if no running trial used any of it."""
        return min(self._limit_bytes, shutil.disk_usage(self.root).free + self._size_bytes())

    def _check_limit(self, size_bytes: int) -> None:
        if size_bytes > self._limit_bytes:
            raise DataError(
                f"The data is {format_bytes(size_bytes)}.",
                f"The cache {self.root} may hold {format_bytes(self._limit_bytes)}.",
                "Raise `data_cache_limit` in the profile, or put the data on the machine and name it by `path:`.",
            )

    def _fits_disk(self, size_bytes: int) -> bool:
        return shutil.disk_usage(self.root).free > size_bytes

    def _by_last_use(self) -> list[str]:
        """Return the entries that no trial uses, the one first that was used least recently."""
        indices = glob.glob(f"{glob.escape(self.root)}/folders/*.json")
        digests = [os.path.basename(path).partition(".")[0] for path in caches.by_last_use(indices)]
        return [digest for digest in digests if not self._users.is_used(digest)]

    def _remove(self, digest: str) -> None:
        with contextlib.suppress(OSError):
            caches.remove(self.folder(digest), f"{self.root}/parts")
        with contextlib.suppress(OSError):
            os.unlink(self._index(digest))

    def _remove_unlinked_blobs(self) -> None:
        """Remove received files that no entry holds any more, but not while files are being received."""
        with contextlib.suppress(OSError), locks.unused(f"{self.root}/blobs") as is_free:  # else the next time
            for entry in os.scandir(f"{self.root}/blobs") if is_free else ():
                status = entry.stat(follow_symlinks=False)
                if status.st_nlink == 1 and (_PART not in entry.name or time.time() - status.st_mtime > _PART_S):
                    os.unlink(entry.path)

    def _size_bytes(self) -> int:
        """Return the bytes of everything here but parts; a file with several names counts once."""
        return caches.size_bytes(self.root, besides=_PART)
