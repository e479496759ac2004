"""The data of a trial, on its own side: every entry of `data:` is there before the cell begins."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping, Sequence

from jupyter_autotrain.errors import DataError
from jupyter_autotrain.worker.data_paths import DataPaths

Entry = Mapping[str, object]


def prepare(trial: Mapping[str, object]) -> DataPaths:
    """The paths of a trial's data; fetches what is named by a URL.

    Args:
        trial: `trial.json`.

    Raises:
        DataError: Something is not there, or cannot be fetched.
    """
    return DataPaths(**{str(entry["name"]): _path(entry, trial) for entry in entries_of(trial)})


def entries_of(trial: Mapping[str, object]) -> Sequence[Entry]:
    """The entries of `data:` in `trial.json`."""
    entries = trial.get("data")
    return entries if isinstance(entries, (list, tuple)) else ()


def link(entries: Sequence[Entry], paths: DataPaths) -> None:
    """Link what was sent into the current folder, at its place beside the notebook, for code that opens it there."""
    for entry in entries:
        place = str(entry.get("work_path") or "")
        if place and not os.path.lexists(place):
            os.makedirs(os.path.dirname(place) or ".", mode=0o700, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another worker of the trial has made it
                os.symlink(paths[str(entry["name"])], place)


def _path(entry: Entry, trial: Mapping[str, object]) -> str:
    if entry["kind"] == "url":
        return _fetched(entry, trial)
    path = os.path.expanduser(str(entry["path"]))
    if not os.path.exists(path):
        raise DataError(
            f"data.{entry['name']}: {path} is not there on {socket.gethostname()}.",
            "Data of the header is there before a trial begins.",
            "Put it there, or correct `data:`, then retry.",
        )
    return path


def _fetched(entry: Entry, trial: Mapping[str, object]) -> str:
    from jupyter_autotrain.worker.data_cache import DEFAULT_LIMIT_BYTES, DataCache  # noqa: PLC0415 - only with a URL
    from jupyter_autotrain.worker.data_fetch import fetch  # noqa: PLC0415 - only trials with a URL pay for `urllib`

    limit_bytes = trial.get("data_limit_bytes")
    cache = DataCache(str(trial["data_folder"]), limit_bytes if isinstance(limit_bytes, int) else DEFAULT_LIMIT_BYTES)
    return fetch(cache, str(entry["url"]), str(entry["sha256"]), str(entry["file_name"]), str(trial["directory"]))
