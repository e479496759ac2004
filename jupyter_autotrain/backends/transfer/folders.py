"""The content of folders that are sent: files by their digests, folders, and one digest of all; and as one tar file."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import BinaryIO

from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.backends.travelling_code import AgentArchive
from jupyter_autotrain.core.data import DataManifest
from jupyter_autotrain.errors import DataError

_PIECE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a folder.

    Attributes:
        path: In the folder.
        size_bytes, sha256: Of its content.
        source: Its content, or where that lies here.
        is_executable: Whether it may be executed.
    """

    path: str
    size_bytes: int
    sha256: str
    source: Path | bytes
    is_executable: bool = False

    def open(self) -> BinaryIO:
        """Open it for reading."""
        return io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb", buffering=0)

    def blocks(self, offset: int = 0) -> Iterator[bytes]:
        """Yield its bytes from an offset on, filled up to whole records of a tar file, without what was added to it.

        Raises:
            DataError: It has become shorter.
        """
        left_bytes = self.size_bytes - offset
        with self.open() as source:
            source.seek(offset)
            while left_bytes:
                block = source.read(min(left_bytes, _PIECE_BYTES))
                if not block:
                    raise DataError(f"{self.source!s} became shorter while it was sent.", "", "Submit the cell again.")
                left_bytes -= len(block)
                yield block
        yield bytes((offset - self.size_bytes) % tarfile.BLOCKSIZE)


@dataclass(frozen=True, slots=True)
class FolderManifest:
    """The content of a folder; `digest` is that of paths, contents and modes together."""

    files: tuple[SentFile, ...]
    folders: tuple[str, ...]
    digest: str

    @classmethod
    def of(cls, files: Iterable[SentFile], folders: Iterable[str]) -> FolderManifest:
        """Return the content that these files and folders make."""
        content = tuple(files), tuple(folders)
        lines = [f"{file.path}\0{file.sha256}\0{int(file.is_executable)}\n" for file in content[0]]
        return cls(*content, hashlib.sha256("".join([*lines, *content[1]]).encode()).hexdigest())

    @property
    def size_bytes(self) -> int:
        """The size of its files together."""
        return sum(file.size_bytes for file in self.files)


def scan_folder(root: Path) -> FolderManifest:
    """Read the content of a folder."""
    inside = sorted(root.rglob("*"))
    folders = tuple(str(path.relative_to(root)) for path in inside if path.is_dir() and not path.is_symlink())
    with ThreadPoolExecutor() as pool:  # digests are made without Python's lock
        files = pool.map(partial(_scan_file, root), [path for path in inside if path.is_file()])
        return FolderManifest.of(files, folders)


def _scan_file(root: Path, path: Path) -> SentFile:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        status = os.fstat(file.fileno())
    is_executable = bool(status.st_mode & stat.S_IXUSR)
    return SentFile(str(path.relative_to(root)), status.st_size, sha256, path, is_executable)


def of_data(manifest: DataManifest) -> FolderManifest:
    """Return what an entry of `data:` held when it was submitted."""
    files = tuple(
        SentFile(file.path, file.size_bytes, file.sha256, Path(manifest.root, file.path), file.is_executable)
        for file in manifest.files
    )
    return FolderManifest.of(files, manifest.folders)


def of_agent(archive: AgentArchive) -> FolderManifest:
    """Return the folder of our own code, with the archive as its only file: the receiver unpacks it."""
    file = SentFile(agent_archive.NAME, len(archive.content), archive.digest, archive.content)
    return FolderManifest((file,), (), archive.digest)


@dataclass(frozen=True)
class TarStream:
    """A folder as a tar file that is never on a disk, without owners and times: always the same bytes."""

    folder: FolderManifest

    @cached_property
    def size_bytes(self) -> int:
        """Return the size of the whole tar file."""
        headers = sum(map(len, self._folder_headers())) + sum(len(_header(file)) for file in self.folder.files)
        whole = sum(file.size_bytes + -file.size_bytes % tarfile.BLOCKSIZE for file in self.folder.files)
        return headers + whole + 2 * tarfile.BLOCKSIZE

    @cached_property
    def sha256(self) -> str:
        """Return the digest of the whole tar file; reads all files once."""
        total = hashlib.sha256()
        for block in self.blocks():
            total.update(block)
        return total.hexdigest()

    def compressed(self) -> bytes:
        """Return the whole tar file, compressed; the same content gives the same bytes. Errors as `blocks`."""
        return gzip.compress(b"".join(self.blocks()), mtime=0)

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes of the tar file, in order.

        Raises:
            DataError: A file has become shorter.
        """
        yield from self._folder_headers()
        for file in sorted(self.folder.files, key=lambda file: file.path):
            yield _header(file)
            yield from file.blocks()
        yield bytes(2 * tarfile.BLOCKSIZE)

    def _folder_headers(self) -> Iterator[bytes]:
        for name in sorted(self.folder.folders):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            info.mode = 0o700
            yield info.tobuf(tarfile.PAX_FORMAT)


def _header(file: SentFile) -> bytes:
    info = tarfile.TarInfo(file.path)
    info.size = file.size_bytes
    info.mode = 0o700 if file.is_executable else 0o600
    return info.tobuf(tarfile.PAX_FORMAT)
