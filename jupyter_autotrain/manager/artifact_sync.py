"""Files of trials that come by the home: results of a place that does not share it, and checkpoints that move.

The checkpoints of a trial that goes on at another backend than the one that has them: they come by the home. All of
them come, or the trial begins anew and says so: it never goes on from a part of them.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.attempt import KeptCheckpoints
from jupyter_autotrain.core.backend import Backend, Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError
from jupyter_autotrain.manager.context import Clocks

_PATIENCE_S = 60.0  # with a backend that does not answer, for each file
_PAUSE_S = 2.0
_log = logging.getLogger(__name__)


def begun_anew(trial: TrialSpec, kept: KeptCheckpoints, reason: str) -> TrialSpec:
    """Return the attempt without the checkpoints of the one before; the trial itself tells its user of that."""
    size = format_bytes(kept.size_bytes)
    note = f"starts over: {size} of its checkpoints stay on {kept.ref.backend}: {reason}"
    return replace(trial, resume_attempt=None, resume_note=note)


@dataclass(slots=True, eq=False)
class CheckpointMove:
    """Brings checkpoints into the home that are needed elsewhere; one thread does, another one may give it up.

    Args:
        kept: What the home has not got.
        backend: The one that has it.
        directory: The home's directory of the attempt that saved it.
        clocks: For waiting.
    """

    kept: KeptCheckpoints
    backend: Backend
    directory: Path
    clocks: Clocks
    _outcome: Literal["", "over", "abandoned"] = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def abandon(self) -> bool:
        """Give it up, so that the trial is not submitted; False when it is over already."""
        return self._end("abandoned")

    def _end(self, outcome: Literal["over", "abandoned"]) -> bool:
        with self._lock:
            self._outcome = self._outcome or outcome
            return self._outcome == outcome

    def bring_home(self, trial: TrialSpec, tell: Callable[[str], None]) -> TrialSpec | None:
        """Copy them into the home, the small ones first; what has come does not come again when this is cut short.

        Args:
            trial: The attempt that goes on from them.
            tell: Takes what is being done: the rest of a sentence that begins with the trial.

        Returns:
            What is to be submitted; None where the move was given up.
        """
        left = self.kept
        try:
            for path, _ in sorted(self.kept.sizes.items(), key=lambda one: one[1]):
                if self._outcome:
                    return None
                size = format_bytes(left.size_bytes)
                tell(f"waits for its checkpoints, of which {size} are to come from {left.ref.backend}")
                self._fetch(path)
                left = left.without(path)
                left.write(self.directory)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises: the trial goes on without
            _log.warning("the checkpoints of %s did not come: %s", left.ref.job_id, error)
            found = error.found if isinstance(error, AutotrainError) else str(error)
            trial = begun_anew(trial, left, found)
        tell("")
        return trial if self._end("over") else None

    def _fetch(self, path: str) -> None:
        """Bring one file; a backend that does not answer for a moment is waited for."""
        deadline_s = self.clocks.tick_s() + _PATIENCE_S
        while True:
            try:
                return self.backend.fetch(self.kept.ref, path, str(self.directory / path))
            except BackendUnavailableError:
                if self._outcome or self.clocks.tick_s() >= deadline_s:
                    raise
            self.clocks.pause(_PAUSE_S)


_WRITE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class StreamCopy:
    """The home's copy of a stream of a job elsewhere. Each byte has its place, so a killed manager doubles nothing.

    Args:
        path: The copy; its name is the stream's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def cursor(self, ref: JobRef) -> Cursor:
        """Return what to read next: what follows the copy.

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
    """Return the copies in the directory: both logs of each worker and of its launcher, and what it uses."""
    names: list[str] = []
    for rank in range(trial.resources.ranks):
        names += (wire.stream_of_rank(wire.STDOUT, rank), wire.stream_of_rank(wire.STDERR, rank))
    names.append(wire.USAGE)
    if trial.launcher in {"torchrun", "mpi"}:
        names.append(wire.LAUNCHER_LOG)
    return tuple(StreamCopy(directory / name) for name in names)


def fetch_results(
    backend: Backend, ref: JobRef, directory: Path, status: JobStatus, limit_bytes: int | None
) -> list[tuple[str, str]]:
    """Copy what an ended job has left, up to a limit and small files first, and keep its status beside it.

    What is left out is noted in the home (`wire.ELSEWHERE_FILE`). Checkpoints stay there; small ones of a job that may
    be tried again come too. None as the limit: nothing comes, as what a client of a federated training has stays there.

    Returns:
        Notes for the user: their level and text.
    """
    notes = []
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if backend.capabilities.artifacts and limit_bytes is not None:
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
        notes.append(("error", f"its files could not be copied back: {found}"))
    return notes


def _fetch_checkpoints(backend: Backend, ref: JobRef, directory: Path, limit_bytes: int) -> None:
    """Note what is to come before anything comes: when this is cut short, the folder here holds a part only."""
    folders = (wire.CHECKPOINTS,)
    sizes = _sizes(backend, ref, folders)
    if any(not path.endswith(wire.DRAFT) for path in sizes):
        KeptCheckpoints(ref, sizes).write(directory)
        left = _fetch(backend, ref, directory, folders, limit_bytes)
        KeptCheckpoints(ref, left).write(directory)


def _sizes(backend: Backend, ref: JobRef, folders: tuple[str, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for folder in folders:
        for name, size in backend.sizes(ref, folder).items():
            sizes[f"{folder}/{name}"] = size
    return sizes


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
