"""A tar file that is never on a disk: the same bytes each time it is read, as long as its files are the same."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jupyter_autotrain.core.data_manifest import DataManifest
from jupyter_autotrain.errors import DataError

_BLOCK_BYTES = 1 << 20
_ROUND = 512


@dataclass(frozen=True, slots=True)
class TarFile:
    """A file of a tar file: its path in it, and where it lies here."""

    name: str
    path: Path
    size_bytes: int
    is_executable: bool = False


@dataclass(frozen=True)
class TarStream:
    """Files and folders as a tar file without owners and times.

    Attributes:
        files: Sorted by name.
        folders: Their names.
    """

    files: tuple[TarFile, ...]
    folders: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Of the whole tar file."""
        headers = sum(len(_header(file)) for file in self.files) + sum(len(_folder_header(one)) for one in self.folders)
        return headers + sum(_rounded(file.size_bytes) for file in self.files) + 2 * _ROUND

    @cached_property
    def sha256(self) -> str:
        """Of the whole tar file; reads all files once."""
        total = hashlib.sha256()
        for block in self.blocks():
            total.update(block)
        return total.hexdigest()

    def blocks(self) -> Iterator[bytes]:
        """The bytes of the tar file, in order.

        Raises:
            DataError: A file has become shorter.
        """
        for folder in self.folders:
            yield _folder_header(folder)
        for file in self.files:
            yield _header(file)
            yield from _content(file)
        yield bytes(2 * _ROUND)


def of_manifest(manifest: DataManifest) -> TarStream:
    """What an entry of `data:` held when it was submitted, as a tar file."""
    root = Path(manifest.root)
    files = [TarFile(file.path, root / file.path, file.size_bytes, file.is_executable) for file in manifest.files]
    return TarStream(tuple(sorted(files, key=lambda file: file.name)), tuple(sorted(manifest.folders)))


def of_folder(folder: Path) -> TarStream:
    """The regular files below a folder, as a tar file."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    files = [TarFile(str(path.relative_to(folder)), path, path.stat().st_size, _is_executable(path)) for path in found]
    folders = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir() and not path.is_symlink()]
    return TarStream(tuple(files), tuple(sorted(folders)))


def content(stream: TarStream, most_bytes: int) -> bytes | None:
    """The whole tar file, when it has at most so many bytes."""
    return b"".join(stream.blocks()) if stream.size_bytes <= most_bytes else None


def _is_executable(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o100)


def _header(file: TarFile) -> bytes:
    info = tarfile.TarInfo(file.name)
    info.size = file.size_bytes
    info.mode = 0o700 if file.is_executable else 0o600
    return info.tobuf(tarfile.PAX_FORMAT)


def _folder_header(name: str) -> bytes:
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE
    info.mode = 0o700
    return info.tobuf(tarfile.PAX_FORMAT)


def _content(file: TarFile) -> Iterator[bytes]:
    """The bytes of a file, filled up to whole records; what was added to it meanwhile is left out."""
    left_bytes = file.size_bytes
    with file.path.open("rb") as source:
        while left_bytes:
            block = source.read(min(_BLOCK_BYTES, left_bytes))
            if not block:
                raise DataError(f"{file.path} became shorter while it was sent.", "", "Submit the cell again.")
            left_bytes -= len(block)
            yield block
    yield bytes(_rounded(file.size_bytes) - file.size_bytes)


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // _ROUND) * _ROUND
