"""What a file or folder of `data:` held when it was submitted: every file with its size, time and digest.

Nothing is copied at the submission: a snapshot would double big data. A file that changes afterwards is noticed by its
size, time or inode before it is used, and what is sent is verified by its digest.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.core.data import folder_digest

_BLOCK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file as it was when it was read: its path below the manifest's root, and by what a change is noticed."""

    path: str
    size_bytes: int
    mtime_ns: int
    inode: int
    sha256: str
    is_executable: bool = False

    @property
    def signature(self) -> tuple[int, int, int]:
        """What stays the same while the file does."""
        return self.size_bytes, self.mtime_ns, self.inode


@dataclass(frozen=True, slots=True)
class DataManifest:
    """A file or folder: `root` holds it under the name that is the first part of every path.

    Attributes:
        root: The folder it lies in.
        name: Its own name there.
        files: Its files, sorted by path.
        folders: The folders in it, itself included where it is one.
        read_ns: The wall clock when this reading began.
    """

    root: str
    name: str
    files: tuple[DataFile, ...]
    folders: tuple[str, ...] = ()
    read_ns: int = 0

    @property
    def path(self) -> Path:
        """Where it lies."""
        return Path(self.root, self.name)

    @property
    def size_bytes(self) -> int:
        """The bytes of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def sha256(self) -> str:
        """The digest of names and contents together."""
        return folder_digest([(file.path, file.sha256, file.is_executable) for file in self.files], self.folders)

    def changed_file(self) -> str:
        """The path of the first file that is not as it was read, or is gone; "" when all are.

        A file of another time and the same content counts as unchanged; that is found by reading it.
        """
        for file in self.files:
            path = Path(self.root, file.path)
            try:
                is_same = signature(path.stat()) == file.signature or digest(path) == file.sha256
            except OSError:
                is_same = False
            if not is_same:
                return str(path)
        return ""


def signature(status: os.stat_result) -> tuple[int, int, int]:
    """Of a file: what `DataFile.signature` is compared with."""
    return status.st_size, status.st_mtime_ns, status.st_ino


def is_executable(status: os.stat_result) -> bool:
    """Whether its owner may execute a file."""
    return bool(status.st_mode & stat.S_IXUSR)


def digest(path: Path, progress: Callable[[int], object] | None = None) -> str:
    """The SHA-256 of a file.

    Args:
        path: The file.
        progress: Called with the number of bytes of each block that was read.

    Raises:
        OSError: It cannot be read.
    """
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            total.update(block)
            if progress is not None:
                progress(len(block))
    return total.hexdigest()
