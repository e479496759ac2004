"""The common part of the backends on this machine: they read and write the trial directory itself."""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject, to_json
from jupyter_autotrain.agent.service import status_resolution, trial_files
from jupyter_autotrain.agent.trial.status import UnknownError
from jupyter_autotrain.agent.trial.trial_file import TrialFile
from jupyter_autotrain.backends import agent_answers, trial_content
from jupyter_autotrain.backends.directories import TrialDirectories
from jupyter_autotrain.backends.trial_content import from_last_saved
from jupyter_autotrain.core.backend import BackendContext, Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.capabilities import PollInterval
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import BackendError, DataError

_MANIFEST = "bundle.json"
MOST_BYTES = 4 << 20  # of one stream in one read
_PIECE_BYTES = 1 << 20


def trial_file_content(trial: TrialSpec, placement: Placement, profile: Profile, context: BackendContext) -> TrialFile:
    """Return the content of `trial.json`: the trial, and where its files lie on this machine."""
    options = {**profile.options, **trial.options}
    trial = from_last_saved(trial, context)
    before = trial.resume_attempt
    content = trial_content.begin(trial, options, placement.accelerators)
    bundle = context.bundle(trial)
    content["directory"] = str(context.directory(trial))
    content["bundle"] = str(bundle)
    content["python"] = _interpreter(bundle)
    content["resume_from"] = "" if before is None else str(context.directory(trial, before) / wire.CHECKPOINTS)
    content["environments"] = str(context.home.environments)
    if trial.data:
        content["data"] = [_with_path(source, trial, context) for source in trial.data]
        content["data_folder"] = str(context.home.data)
        content["data_limit_bytes"] = cast("int | None", options.get("data_cache_limit"))
    return content


def _with_path(source: DataSource, trial: TrialSpec, context: BackendContext) -> JsonObject:
    """Return an entry of `data:` with its path on this machine, where nothing is copied."""
    manifest = context.data(trial, source.name) if source.kind is DataKind.COPY else None
    path = source.path if manifest is None else str(manifest.path)
    return {**cast("JsonObject", to_json(source)), "path": path}


def check_data(trial: TrialSpec, context: BackendContext) -> None:
    """Make sure that the data of a trial is as submitted, and that there is a folder for data that it fetches.

    Raises:
        DataError: A file of it was changed or removed since.
    """
    if trial.data:
        files.make_directories(context.home.data)  # a container gets it as a volume
    for source in trial.data:
        manifest = context.data(trial, source.name)
        if manifest is not None and (changed := manifest.changed_file()):
            raise changed_error(source, changed)


def changed_error(source: DataSource, path: str) -> DataError:
    """Return the error of data that is not what it was when the experiment was submitted."""
    return DataError(
        f"data.{source.name}: {path} was changed or removed after the experiment was submitted.",
        "All trials of an experiment read the same data.",
        "Submit the cell again, or put the file back and retry.",
    )


def _interpreter(bundle: Path) -> str:
    """Return the interpreter that captured the bundle; before there is a bundle, that of this process."""
    try:
        manifest = json.loads((bundle / _MANIFEST).read_bytes())
    except FileNotFoundError:
        return sys.executable
    except ValueError as error:
        raise BackendError(f"{bundle / _MANIFEST} is damaged: {error}.", "", "Submit the cell again.") from error
    python = manifest.get("python") if isinstance(manifest, dict) else None
    return python if isinstance(python, str) and python else sys.executable


class LocalDirectory:
    """A trial directory on this machine.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, path: str, data: bytes) -> None:
        """Write a file, atomically."""
        with self._told(path):
            trial_files.put(self.path, path, data)

    def listing(self, path: str) -> Mapping[str, int] | int:
        """Return the size of a file, or the sizes of all below a folder."""
        with self._told(path):
            return trial_files.listing(self.path, path)

    def receive(self, path: str, size_bytes: int, part: IO[bytes]) -> None:  # noqa: ARG002 - copied to its end
        """Copy a file."""
        with self._told(path), files.open_regular(self.path, path) as source:
            part.truncate(0)
            shutil.copyfileobj(source, part, _PIECE_BYTES)

    @contextlib.contextmanager
    def _told(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BackendError(
                f"{path} in {self.path}: {error.strerror or error}.", "", "See what is there: `%autotrain pull`."
            ) from error


class TrialDirectoryBackend(TrialDirectories):
    """The methods of a backend whose trial directories lie on this machine."""

    poll_interval = PollInterval()  # reading a few files costs microseconds

    def directory_of(self, ref: JobRef) -> LocalDirectory:
        """Return the directory of a job."""
        return LocalDirectory(directory(ref))

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """Read each status file; a job whose supervisor is gone becomes LOST, and its processes are ended."""
        return list(map(self._status, refs))

    def _status(self, ref: JobRef) -> JobStatus:
        try:
            return agent_answers.status(ref, status_resolution.resolve_status(directory(ref)))
        except UnknownError as error:
            return agent_answers.status(ref, str(error))

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Read the streams' files from their cursors on."""
        return list(map(_read, cursors))

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """Return the paths that are not on this machine, each with its name."""
        return [(platform.node(), path) for path in paths if not Path(path).expanduser().exists()]


def directory(ref: JobRef) -> Path:
    """Return the trial directory of a job."""
    return Path(str(ref.data.get("directory", "/nonexistent")))


def _read(cursor: Cursor) -> Chunk:
    try:
        return Chunk(cursor, files.read(directory(cursor.ref), cursor.stream, MOST_BYTES, cursor.offset))
    except OSError as error:
        if files.is_absent(error):
            return Chunk(cursor, b"")
        fault = f"its {cursor.stream} cannot be read: {error.strerror}"
        return Chunk(cursor, b"", fault, isinstance(error, files.NotRegularError))
