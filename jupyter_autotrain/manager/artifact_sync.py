"""Bringing the files of a place that does not share the home into the home's own trial directory."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Backend, Cursor, JobRef, JobStatus

_LOGS = (wire.STDOUT, wire.STDERR)
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_log = logging.getLogger(__name__)


def keep_logs(backend: Backend, ref: JobRef, directory: Path) -> int:
    """Append what is new in a job's logs; the length of the copy is the cursor, so a killed manager doubles nothing.

    Returns:
        How many bytes were new.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    sizes = {name: _size(directory / name) for name in _LOGS}
    chunks = backend.read([Cursor(ref, name, size) for name, size in sizes.items()])
    for name, chunk in zip(_LOGS, chunks, strict=True):
        if chunk.data:
            _append(directory / name, chunk.data)
    return sum(len(chunk.data) for chunk in chunks)


def fetch_results(backend: Backend, ref: JobRef, directory: Path, status: JobStatus) -> list[str]:
    """Copy the rest of the logs, the outputs and the checkpoints of an ended job, and keep its status beside them.

    Returns:
        What went wrong, for the user.
    """
    try:
        while keep_logs(backend, ref, directory):
            pass
        if backend.capabilities.artifacts:
            for folder in (wire.OUTPUTS, wire.CHECKPOINTS):
                backend.fetch(ref, folder, str(directory / folder))
        wire.write_atomically(str(directory / wire.STATUS_FILE), json.dumps(status.detail).encode())
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises: the trial's end and its metrics count
        _log.exception("could not bring home the files of %s", ref.job_id)
        return [f"its files could not be brought home: {error}"]
    return []


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0


def _append(path: Path, data: bytes) -> None:
    fd = os.open(path, _APPEND, 0o600)
    with os.fdopen(fd, "ab") as file:
        file.write(data)
