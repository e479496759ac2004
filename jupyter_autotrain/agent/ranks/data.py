"""The data of a trial, on its own side: every entry of `data:` is there before the cell, which finds it as `data`."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping, Sequence

from jupyter_autotrain.agent.errors import DataError

TYPE_CHECKING = False  # every trial imports what names a cell finds
Entry = Mapping[str, object]


if TYPE_CHECKING:
    from pathlib import Path


class DataPaths:
    """The paths of data: `data.train` and `data["train"]` are the same `pathlib.Path`, to open a file by.

    A trial has it under the name `data`. In the notebook `data = at.DataPaths(train="./train.parquet")` lets the same
    cell run as an ordinary one.

    Args:
        **paths: The path of each name; `~` and relative paths are made absolute.
    """

    def __init__(self, **paths: str | os.PathLike[str]) -> None:
        from pathlib import Path  # noqa: PLC0415 - only trials with data pay

        given = {name: Path(path).expanduser() for name, path in paths.items()}
        self._paths = {name: Path(os.path.abspath(path)) for name, path in given.items()}

    def __getitem__(self, name: str) -> Path:
        try:
            return self._paths[name]
        except KeyError:
            raise KeyError(self._unknown(name)) from None

    def __getattr__(self, name: str) -> Path:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._paths[name]
        except KeyError:
            raise AttributeError(self._unknown(name)) from None

    def _unknown(self, name: str) -> str:
        return f"`data:` names no {name!r}; it names: {', '.join(self._paths) or 'nothing'}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._paths]

    def __repr__(self) -> str:
        return f"DataPaths({', '.join(f'{name}={str(path)!r}' for name, path in self._paths.items())})"


def prepare(trial: Mapping[str, object]) -> DataPaths:
    """Return the paths of a trial's data; data that is named by a URL is fetched.

    Args:
        trial: `trial.json`.

    Raises:
        DataError: Something is not there, or cannot be fetched.
    """
    return DataPaths(**{str(entry["name"]): _path(entry, trial) for entry in entries_of(trial)})


def entries_of(trial: Mapping[str, object]) -> Sequence[Entry]:
    """Return the entries of `data:` in `trial.json`."""
    entries = trial.get("data")
    return entries if isinstance(entries, (list, tuple)) else ()


def link(entries: Sequence[Entry], paths: DataPaths) -> None:
    """Link files that were sent into the current folder, at their place beside the notebook.

    So code that opens them there finds them.
    """
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
    from jupyter_autotrain.agent.objects.data_cache import DEFAULT_LIMIT_BYTES, DataCache  # noqa: PLC0415 - only with a URL
    from jupyter_autotrain.agent.objects.download import fetch  # noqa: PLC0415 - only trials with a URL pay for `urllib`

    limit_bytes = trial.get("data_limit_bytes")
    cache = DataCache(str(trial["data_folder"]), limit_bytes if isinstance(limit_bytes, int) else DEFAULT_LIMIT_BYTES)
    return fetch(cache, str(entry["url"]), str(entry["sha256"]), str(entry["file_name"]), str(trial["directory"]))
