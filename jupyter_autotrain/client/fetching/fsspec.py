"""Files that fsspec opens: gs://, az://, hf:// and all others that an installed package knows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec.core
from fsspec.callbacks import Callback

from jupyter_autotrain.client.fetching.source import Told
from jupyter_autotrain.core.data import DataOrigin


class _Telling(Callback):  # type: ignore[misc]  # fsspec has no types
    """Tells how much of one file or several has come.

    Args:
        told: Is told.
        total_bytes: Of all files; 0 where they do not say.
    """

    def __init__(self, told: Told, total_bytes: int) -> None:
        super().__init__()
        self._told = told
        self._total_bytes = total_bytes

    def relative_update(self, inc: int = 1) -> None:
        """Tell that so many bytes more have come."""
        super().relative_update(inc)
        self._told(self.value, self._total_bytes)


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

    def fetch(self, origin: DataOrigin, folder: Path, told: Told) -> Path:
        """Copy the file, or the folder with all in it."""
        files, path = _open(origin)
        target = folder / (PurePosixPath(path).name or "files")
        if files.isfile(path):
            files.get_file(path, str(target), callback=_Telling(told, int(files.size(path) or 0)))
            return target
        root = path.rstrip("/")
        found = files.find(path, detail=True)
        telling = _Telling(told, sum(int(about.get("size") or 0) for about in found.values()))
        for name in found:
            below = PurePosixPath(name).relative_to(root)
            if ".." in below.parts:
                continue
            (target / below).parent.mkdir(parents=True, exist_ok=True)
            files.get_file(name, str(target / below), callback=telling)
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
