"""The data that a trial reads and its code does not hold: the sources of the header's section `data:`.

Of each file or folder that is sent, a manifest keeps every file's size, time and digest at the submission. Nothing is
copied then: a snapshot would double big data. A file that changes afterwards is noticed by its size, time or inode
before it is used, and what is sent is verified by its digest.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

FETCH_LIMIT_BYTES = 100_000_000  # of what a trial leaves elsewhere, copied at its end where the header says nothing


class DataKind(StrEnum):
    """The way that data gets to the place where a trial runs."""

    COPY = "copy"  # a file or folder here, sent once per content
    PATH = "path"  # there already, such as shared storage
    URL = "url"  # fetched by the trial's machine, once per content


@dataclass(frozen=True, slots=True)
class DataOrigin:
    """The place that data of kind COPY is fetched from to the submitter's machine, anew with each submission.

    Attributes:
        kind: cvat, label_studio or fsspec.
        address: What is fetched there: task/12, project/3, or gs://bucket/folder.
        server: The server's address; "" for that of the submitter's variables.
        format: The form of the labels, such as coco.
        license: What it may be used for, as the header or the export says.
        revision: What was fetched: it changes when the labels or files do.
        counts: How many of what it holds, such as ("images", 20).
    """

    kind: str
    address: str
    server: str = ""
    format: str = ""
    license: str = ""
    revision: str = ""
    counts: tuple[tuple[str, int], ...] = ()

    @property
    def is_labelled(self) -> bool:
        """True where people label it."""
        return self.kind != "fsspec"

    def __str__(self) -> str:
        """Return it as a run card shows it."""
        held = ", ".join(f"{number:,} {name}" for name, number in self.counts)
        where = f"{self.kind} {self.address}" if self.is_labelled else self.address
        parts = (where, self.format, held, f"license: {self.license or 'not stated'}", f"revision {self.revision}")
        return " · ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class DataSource:
    """An entry of `data:`; in the cell, `data.NAME` is where it lies.

    Attributes:
        name: Its name in the cell.
        path: Of kind PATH: where it lies on every node; may begin with `~`. "" where each client has its own.
        url: Of kind URL: where it is fetched from.
        sha256: Of kind URL: the digest of the file. Of kind COPY: that of all its files (`folder_digest`).
        file_name: The last part of its path where it is copied or fetched to.
        size_bytes: Of kind COPY.
        work_path: Of kind COPY: its path below the notebook's folder, where a trial finds a link to it; or "".
        local_path: Of kind COPY: where it lies on the submitter's machine; "" in a `TrialSpec`.
        origin: Of kind COPY: where it is fetched from; None for what lies here already.
    """

    name: str
    kind: DataKind
    path: str = ""
    url: str = ""
    sha256: str = ""
    file_name: str = ""
    size_bytes: int = 0
    work_path: str = ""
    local_path: str = ""
    origin: DataOrigin | None = None


def folder_digest(files: Iterable[tuple[str, str, bool]], folders: Iterable[str] = ()) -> str:
    """Return the SHA-256 of everything in a folder.

    Args:
        files: Of each file: its path in the folder, its SHA-256, and whether it may be executed.
        folders: The paths of the folders in it.
    """
    lines = [f"{path}\0{sha256}\0{int(is_executable)}\n" for path, sha256, is_executable in files]
    return hashlib.sha256("".join([*lines, *folders]).encode()).hexdigest()


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
        """The facts that stay the same while the file does."""
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
        """The path of the file or folder."""
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
        """Return the path of the first file that is not as it was read, or is gone; "" when there is none.

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
    """Return the facts of a file that `DataFile.signature` is compared with."""
    return status.st_size, status.st_mtime_ns, status.st_ino


def is_executable(status: os.stat_result) -> bool:
    """Tell whether the owner of a file may execute it."""
    return bool(status.st_mode & stat.S_IXUSR)


def digest(path: Path, progress: Callable[[int], object] | None = None) -> str:
    """Return the SHA-256 of a file.

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
