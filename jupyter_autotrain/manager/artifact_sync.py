"""Bringing the files of a backend that does not share the home into the home's own trial directory."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Backend, Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.kept_checkpoints import KeptCheckpoints
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_log = logging.getLogger(__name__)


class StreamCopy:
    """The home's copy of a stream of a job elsewhere. Each byte has its place, so a killed manager doubles nothing.

    Args:
        path: The copy; its name is the stream's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def cursor(self, ref: JobRef) -> Cursor:
        """What to read next: what follows the copy.

        Raises:
            OSError: The copy cannot be looked at.
        """
        try:
            size = self._path.lstat().st_size
        except FileNotFoundError:
            size = 0
        return Cursor(ref, self._path.name, size)

    def write(self, chunk: Chunk) -> None:
        """Keep what has been read.

        Raises:
            OSError: It cannot be written; what was written of it counts.
        """
        if not chunk.data:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(self._path, _WRITE, 0o600), "wb") as file:
            file.seek(chunk.cursor.offset)
            file.write(chunk.data)


def log_copies(directory: Path, trial: TrialSpec) -> tuple[StreamCopy, ...]:
    """The copies of both logs of each worker in the home's trial directory, of its launcher's, and of what it uses."""
    ranks = range(trial.resources.ranks)
    names = [wire.stream_of_rank(stream, rank) for rank in ranks for stream in (wire.STDOUT, wire.STDERR)]
    names.append(wire.USAGE)
    if trial.launcher in {"torchrun", "mpi"}:
        names.append(wire.LAUNCHER_LOG)
    return tuple(StreamCopy(directory / name) for name in names)


def fetch_results(
    backend: Backend, ref: JobRef, directory: Path, status: JobStatus, limit_bytes: int
) -> list[tuple[str, str]]:
    """Copy what an ended job has left, up to a limit and small files first, and keep its status beside it.

    What is left out is noted in the home (`wire.ELSEWHERE_FILE`). Checkpoints stay there; small ones of a job that may
    be tried again come too.

    Returns:
        Notes for the user: their level and text.
    """
    notes = []
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if backend.capabilities.artifacts:
            left = _fetch(backend, ref, directory, (wire.OUTPUTS, wire.WORK), limit_bytes)
            if left:
                wire.write_atomically(str(directory / wire.ELSEWHERE_FILE), json.dumps(left).encode())
                notes.append(("warning", _left_there(backend, ref, left)))
            if status.state is not TrialState.SUCCEEDED:
                _fetch_checkpoints(backend, ref, directory, limit_bytes)
        wire.write_atomically(str(directory / wire.STATUS_FILE), json.dumps(status.detail).encode())
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises: the trial's end and its metrics count
        _log.exception("could not bring home the files of %s", ref.job_id)
        found = error.found if isinstance(error, AutotrainError) else error
        notes.append(("error", f"its files could not be brought home: {found}"))
    return notes


def _fetch_checkpoints(backend: Backend, ref: JobRef, directory: Path, limit_bytes: int) -> None:
    """What is to come is noted before anything comes: when this is cut short, the folder here holds a part only."""
    folders = (wire.CHECKPOINTS,)
    sizes = _sizes(backend, ref, folders)
    if any(not path.endswith(wire.DRAFT) for path in sizes):
        KeptCheckpoints(ref, sizes).write(directory)
        left = _fetch(backend, ref, directory, folders, limit_bytes)
        KeptCheckpoints(ref, left).write(directory)


def _sizes(backend: Backend, ref: JobRef, folders: tuple[str, ...]) -> dict[str, int]:
    return {f"{folder}/{name}": size for folder in folders for name, size in backend.sizes(ref, folder).items()}


def _fetch(
    backend: Backend, ref: JobRef, directory: Path, folders: tuple[str, ...], limit_bytes: int
) -> dict[str, int]:
    """Copy folders, or of larger ones as many files as the limit allows; gives those left out, with their sizes."""
    sizes = _sizes(backend, ref, folders)
    if sum(sizes.values()) <= limit_bytes:
        for folder in folders:
            backend.fetch(ref, folder, str(directory / folder))
        return {}
    left = {}
    total_bytes = 0
    for path, size in sorted(sizes.items(), key=lambda one: one[1]):
        total_bytes += size
        if total_bytes > limit_bytes:
            left[path] = size
        else:
            backend.fetch(ref, path, str(directory / path))
    return left


def _left_there(backend: Backend, ref: JobRef, left: dict[str, int]) -> str:
    host = str(ref.data.get("host") or backend.name)
    size = format_bytes(sum(left.values()))
    return f"{count(len(left), 'file')} ({size}) stayed on {host}: `%autotrain pull` brings them (`fetch_limit:`)"
