"""The directory of a trial, wherever it lies: on this machine, on a host, in a pod or collected from one.

What the backend contract does with files is written here, over the few things that a place can do with them.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Protocol

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.errors import BackendError

_PART = ".part"


class TrialDirectory(Protocol):
    """The directory of one trial on one node."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file, atomically.

        Raises:
            BackendError: It leads out of the directory, or cannot be written.
        """
        ...

    def listing(self, path: str) -> Mapping[str, int] | int:
        """Return the size of a file, or the sizes of all regular files below a folder, by path in it; of folders -1.

        A folder of `wire.FOLDERS` that is not there is an empty one.

        Raises:
            BackendError: There is nothing, or it cannot be read.
        """
        ...

    def receive(self, path: str, size_bytes: int, part: IO[bytes]) -> None:
        """Complete a part of a file with what follows, up to its size; a place that sends no rests sends all anew.

        Raises:
            BackendError: It cannot be read.
            OSError: The part cannot be written.
        """
        ...


class TrialDirectories(ABC):
    """The methods of a backend about the files of its trials."""

    @abstractmethod
    def directory_of(self, ref: JobRef) -> TrialDirectory:
        """Return the directory of a job.

        Raises:
            BackendError: There is none, or its node is not known.
        """

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory."""
        self.directory_of(ref).put(path, data)

    def sizes(self, ref: JobRef, path: str) -> dict[str, int]:
        """Return the bytes of all regular files below a folder of the trial directory."""
        return sizes(self.directory_of(ref), path)

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """Copy a file or folder of the trial directory to this machine; of a folder, only the regular files."""
        fetch(self.directory_of(ref), path, Path(target))


def sizes(directory: TrialDirectory, path: str) -> dict[str, int]:
    """Return the bytes of all regular files below a folder, by path in it.

    Raises:
        BackendError: There is no such folder, or it cannot be read.
    """
    found = directory.listing(path)
    if not isinstance(found, Mapping):
        raise BackendError(f"{path} of the trial is not a folder.")
    known = {name: size for name, size in found.items() if size != -1}
    for name in known:
        _inside(Path("/folder"), name)
    return known


def listing_below(found: Mapping[str, int], path: str, job_id: str) -> Mapping[str, int] | int:
    """Return what `TrialDirectory.listing` gives, from the sizes of all files of a trial by their paths.

    Raises:
        BackendError: There is nothing.
    """
    if path in found:
        return found[path]
    prefix = "" if path == "." else f"{path}/"
    below = {name[len(prefix) :]: size for name, size in found.items() if name.startswith(prefix)}
    if not below and path not in wire.FOLDERS:
        raise BackendError(f"Job {job_id} has no {path!r}.", "", "See what is there: `%autotrain pull`.")
    return below


def fetch(directory: TrialDirectory, path: str, target: Path) -> None:
    """Copy a file or a folder; of a folder, only the regular files are copied.

    Raises:
        BackendError: There is nothing, it cannot be read, or the target cannot be written.
    """
    found = directory.listing(path)
    try:
        files.make_directories(target.parent)
        if not isinstance(found, Mapping):
            _fetch_file(directory, path, found, target)
            return
        files.make_directories(target)
        for name, size_bytes in found.items():
            goal = _inside(target, name)
            if size_bytes == -1:
                files.make_directories(goal)
            else:
                files.make_directories(goal.parent)
                _fetch_file(directory, os.path.normpath(f"{path}/{name}"), size_bytes, goal)
    except OSError as error:
        raise BackendError(f"{path} of the trial cannot be written to {target}: {error.strerror}.") from error


def _fetch_file(directory: TrialDirectory, path: str, size_bytes: int, goal: Path) -> None:
    """Copy a file by a part beside it, which takes its name when it is whole."""
    part = goal.with_name(f"{goal.name}{_PART}")
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "r+b") as file:
        directory.receive(path, size_bytes, file)
    part.replace(goal)


def write_pieces(part: IO[bytes], size_bytes: int, read: Callable[[int], bytes]) -> None:
    """Write a file anew, piece by piece, up to a size: what it has grown by meanwhile is left there.

    Args:
        part: The file here.
        size_bytes: How long it is there.
        read: Gives the bytes from an offset on; empty at the end.
    """
    part.truncate(0)
    part.seek(0)
    offset = 0
    while offset < size_bytes and (data := read(offset)):
        offset += part.write(data)


def _inside(target: Path, name: str) -> Path:
    goal = Path(os.path.normpath(target / name))
    if target not in goal.parents:
        raise BackendError(f"The place of the trial names a file outside of the folder: {name!r}.")
    return goal
