"""What backends on this machine have in common: they read and write the trial directory itself."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from jupyter_autotrain.backends.earlier_checkpoints import from_last_saved
from jupyter_autotrain.backends.local import status as statuses
from jupyter_autotrain.backends.local import status_resolution
from jupyter_autotrain.backends.local.status import UnknownError
from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.backend import BackendContext, Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.capabilities import PollInterval
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.json import JsonObject, to_json
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendError, DataError

_MANIFEST = "bundle.json"
MOST_BYTES = 4 << 20  # of one stream in one read


def trial_file_content(trial: TrialSpec, placement: Placement, profile: Profile, context: BackendContext) -> JsonObject:
    """What stands in `trial.json`: the trial, and where its files lie on this machine."""
    bundle = context.bundle(trial)
    before = from_last_saved(trial, context).resume_attempt
    return {
        **cast("JsonObject", to_json(trial)),
        "directory": str(context.directory(trial)),
        "bundle": str(bundle),
        "python": _interpreter(bundle),
        "gpus": placement.accelerators,
        "resume_from": "" if before is None else str(context.directory(trial, before) / wire.CHECKPOINTS),
        "environments": str(context.home.environments),
        "options": {**profile.options, **trial.options},
        "workers": trial.resources.workers_per_node,
        "wire": wire.VERSION,
        **_data_content(trial, profile, context),
    }


def _data_content(trial: TrialSpec, profile: Profile, context: BackendContext) -> JsonObject:
    """Where the trial's data lies, and the cache of what it fetches."""
    if not trial.data:
        return {}
    return {
        "data": [_with_path(source, trial, context) for source in trial.data],
        "data_folder": str(context.home.data),
        "data_limit_bytes": {**profile.options, **trial.options}.get("data_cache_limit"),
    }


def _with_path(source: DataSource, trial: TrialSpec, context: BackendContext) -> JsonObject:
    """An entry of `data:` with its path on this machine, where nothing is copied."""
    manifest = context.data(trial, source.name) if source.kind is DataKind.COPY else None
    path = source.path if manifest is None else str(manifest.path)
    return {**cast("JsonObject", to_json(source)), "path": path}


def check_data(trial: TrialSpec, context: BackendContext) -> None:
    """Make sure that what a trial reads here is what was submitted, and that there is a folder for what it fetches.

    Raises:
        DataError: A file of it was changed or removed since.
    """
    if trial.data:
        make_directories(context.home.data)  # a container gets it as a volume
    for source in trial.data:
        manifest = context.data(trial, source.name)
        if manifest is not None and (changed := manifest.changed_file()):
            raise changed_error(source, changed)


def changed_error(source: DataSource, path: str) -> DataError:
    """The error of data that is not what it was when the experiment was submitted."""
    return DataError(
        f"data.{source.name}: {path} was changed or removed after the experiment was submitted.",
        "All trials of an experiment read the same data.",
        "Submit the cell again, or put the file back and retry.",
    )


def _interpreter(bundle: Path) -> str:
    """The interpreter that captured the bundle; before there is one, this process is what would capture it."""
    try:
        manifest = json.loads((bundle / _MANIFEST).read_bytes())
    except FileNotFoundError:
        return sys.executable
    except ValueError as error:
        raise BackendError(f"{bundle / _MANIFEST} is damaged: {error}.", "", "Submit the cell again.") from error
    python = manifest.get("python") if isinstance(manifest, dict) else None
    return python if isinstance(python, str) and python else sys.executable


def make_directories(path: Path) -> None:
    """Make a folder and all above it that are missing, for their owner alone."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


class TrialDirectoryBackend:
    """The methods of a backend whose trial directories lie on this machine."""

    poll_interval = PollInterval()  # reading a few files costs microseconds

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """Read each status file; a job whose supervisor is gone becomes LOST, and what it left is ended."""
        return [self._status(ref) for ref in refs]

    def _status(self, ref: JobRef) -> JobStatus:
        try:
            status = status_resolution.resolve_status(directory(ref))
        except UnknownError as error:
            return JobStatus(ref, TrialState.PREPARING, doubt=str(error))
        if status is None:
            return JobStatus(
                ref,
                TrialState.LOST,
                f"Nothing is known of job {ref.job_id} here: it was never started, or its directory was deleted.",
            )
        return JobStatus(ref, TrialState(str(status["state"])), statuses.reason(status), status)

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Read the streams' files from their cursors on."""
        return [_read(cursor) for cursor in cursors]

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory."""
        target = _inside(ref, path)
        try:
            make_directories(target.parent)
            wire.write_atomically(str(target), data)
        except OSError as error:
            raise BackendError(f"{path} cannot be written for job {ref.job_id}: {error}.") from error

    def sizes(self, ref: JobRef, path: str) -> dict[str, int]:
        """Look at each file."""
        folder = _inside(ref, path)
        if not folder.is_dir():
            if path in wire.FOLDERS:
                return {}
            raise BackendError(f"Job {ref.job_id} has no folder {path!r}.")
        found = {}
        for name, kind in files.walk(str(folder)):
            if kind == stat.S_IFREG:
                with contextlib.suppress(FileNotFoundError):  # it went meanwhile
                    found[name] = (folder / name).lstat().st_size
        return found

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """Those that are not on this machine."""
        return [(platform.node(), path) for path in paths if not Path(path).expanduser().exists()]

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """Copy a file or folder out of the trial directory; in a folder, what is no regular file is left out."""
        source = _inside(ref, path)
        goal = Path(target)
        try:
            make_directories(goal.parent)
            if stat.S_ISDIR(source.lstat().st_mode):
                files.copy_tree(directory(ref), path, target)
            else:
                files.copy_file(directory(ref), path, target)
        except OSError as error:
            if path in wire.FOLDERS and files.is_absent(error):
                return  # it was empty when the trial ended
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


def _read(cursor: Cursor) -> Chunk:
    try:
        return Chunk(cursor, files.read(directory(cursor.ref), cursor.stream, MOST_BYTES, cursor.offset))
    except OSError as error:
        if files.is_absent(error):
            return Chunk(cursor, b"")
        fault = f"its {cursor.stream} cannot be read: {error.strerror}"
        return Chunk(cursor, b"", fault, isinstance(error, files.NotRegularError))
