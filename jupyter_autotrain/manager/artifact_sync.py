"""Bringing the files of a backend that does not share the home into the home's own trial directory."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Backend, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.spec import TrialSpec

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_log = logging.getLogger(__name__)


class LogCopy:
    """The home's copy of a log of a job elsewhere. Its length is the cursor, so a killed manager doubles nothing.

    Args:
        path: The copy; its name is the stream's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def cursor(self, ref: JobRef) -> Cursor:
        """What to read next.

        Raises:
            OSError: The copy cannot be looked at.
        """
        try:
            size = self._path.lstat().st_size
        except FileNotFoundError:
            size = 0
        return Cursor(ref, self._path.name, size)

    def append(self, data: bytes) -> None:
        """Keep what has been read.

        Raises:
            OSError: It cannot be written; what was written of it counts.
        """
        if not data:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._path, _APPEND, 0o600)
        with os.fdopen(fd, "ab") as file:
            file.write(data)


def log_copies(directory: Path, trial: TrialSpec) -> tuple[LogCopy, ...]:
    """The copies of both logs of each worker in the home's trial directory, and of its launcher's."""
    ranks = range(trial.resources.ranks)
    names = [wire.stream_of_rank(stream, rank) for rank in ranks for stream in (wire.STDOUT, wire.STDERR)]
    if trial.launcher in {"torchrun", "mpi"}:
        names.append(wire.LAUNCHER_LOG)
    return tuple(LogCopy(directory / name) for name in names)


def fetch_results(backend: Backend, ref: JobRef, directory: Path, status: JobStatus) -> list[str]:
    """Copy the outputs and checkpoints of an ended job, and keep its status beside them.

    Returns:
        What went wrong, for the user.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if backend.capabilities.artifacts:
            for folder in (wire.OUTPUTS, wire.CHECKPOINTS):
                backend.fetch(ref, folder, str(directory / folder))
        wire.write_atomically(str(directory / wire.STATUS_FILE), json.dumps(status.detail).encode())
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises: the trial's end and its metrics count
        _log.exception("could not bring home the files of %s", ref.job_id)
        return [f"its files could not be brought home: {error}"]
    return []
