"""What all places that share this machine's disk do alike: read and write the trial directory itself."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from jupyter_autotrain.backends import settle
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.json import JsonObject, to_json
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendError

MOST_BYTES = 4 << 20  # of one stream in one read


def content(trial: TrialSpec) -> JsonObject:
    """What stands in `trial.json`."""
    known = cast("dict[str, object]", to_json(trial))
    return cast("JsonObject", known | {"python": trial.python or sys.executable, "wire": wire.VERSION})


def make(path: Path) -> None:
    """Make a folder and all above it that are missing, for their owner alone."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


class TrialFolders:
    """The methods of a backend whose trial directories lie on this machine."""

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """Read each status file; a job whose supervisor is gone is settled as LOST, and what it left is ended."""
        return [self._status(ref) for ref in refs]

    def _status(self, ref: JobRef) -> JobStatus:
        status = settle.settled(directory(ref))
        if not status:
            return JobStatus(ref, TrialState.LOST, f"Nothing is known of job {ref.job_id} here: it was never started.")
        return JobStatus(ref, TrialState(str(status["state"])), str(status["reason"]), status)

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Read the streams' files from their cursors on."""
        return [Chunk(cursor, _read(directory(cursor.ref) / cursor.stream, cursor.offset)) for cursor in cursors]

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory."""
        target = _inside(ref, path)
        try:
            make(target.parent)
            wire.write_atomically(str(target), data)
        except OSError as error:
            raise BackendError(f"{path} cannot be written for job {ref.job_id}: {error}.") from error

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """Copy a file or folder out of the trial directory."""
        source, goal = _inside(ref, path), Path(target)
        try:
            make(goal.parent)
            if source.is_dir():
                shutil.copytree(source, goal, dirs_exist_ok=True)
            else:
                shutil.copy2(source, goal)
        except OSError as error:
            raise BackendError(
                f"{path} of job {ref.job_id} cannot be fetched: {error}.", "", "See what is there: `%autotrain pull`."
            ) from error


def directory(ref: JobRef) -> Path:
    """The trial directory of a job."""
    return Path(str(ref.data.get("directory", "/nonexistent")))


def _inside(ref: JobRef, path: str) -> Path:
    folder = directory(ref)
    target = Path(os.path.normpath(folder / path))
    if not target.is_relative_to(folder) or not folder.is_dir():
        raise BackendError(f"Job {ref.job_id} has no place for {path!r}.", f"A path inside {folder}.")
    return target


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            return file.read(MOST_BYTES) or b""
    except OSError:
        return b""
