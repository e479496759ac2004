"""Files that fsspec opens: gs://, az://, hf:// and all others that an installed package knows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec.core

from jupyter_autotrain.core.data import DataOrigin


class FsspecFiles:
    """Files and folders by their addresses; credentials are those that the library of each finds by itself."""

    def revision(self, origin: DataOrigin) -> str:
        """Return a digest of what the place says of each file, such as its size, time and checksum.

        Raises:
            FileNotFoundError: There is none.
        """
        files, path = _open(origin)
        found = files.find(path, detail=True)
        if not found:
            raise FileNotFoundError(origin.address)
        text = json.dumps({name: _facts(about) for name, about in found.items()}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def fetch(self, origin: DataOrigin, folder: Path) -> Path:
        """Copy the file, or the folder with all in it."""
        files, path = _open(origin)
        target = folder / (PurePosixPath(path).name or "files")
        if files.isfile(path):
            files.get_file(path, str(target))
            return target
        root = path.rstrip("/")
        for name in files.find(path):
            below = PurePosixPath(name).relative_to(root)
            if ".." in below.parts:
                continue
            (target / below).parent.mkdir(parents=True, exist_ok=True)
            files.get_file(name, str(target / below))
        return target


def _open(origin: DataOrigin) -> tuple[Any, str]:
    files, path = fsspec.core.url_to_fs(origin.address)
    files.invalidate_cache()
    return files, str(path)


def _facts(about: dict[str, object]) -> dict[str, object]:
    """Leave out what changes as a file is read."""
    return {key: value for key, value in about.items() if "access" not in key.lower() and key != "atime"}


@contextmanager
def connect() -> Iterator[FsspecFiles]:
    """Return what reads them."""
    yield FsspecFiles()
