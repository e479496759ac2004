"""What killed processes left in a home: drafts, folders of submits that never became experiments, partly written files.

Nothing that is still being written counts: submitters hold a lock that ends with their process, and the name of a
partly written file holds the id of the process that writes it.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupyter_autotrain.client.drafts import no_submitter
from jupyter_autotrain.core import system
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store import Store

_PARTLY_WRITTEN: Final = re.compile(r".*\.(\d+)\.\d+\.draft")
_PLACES: Final = (
    "*.draft",
    "experiments/*/*.draft",
    "experiments/*/trials/*/*.draft",
    "experiments/*/trials/*/*/*.draft",
)
_CONTROL: Final = "experiments/*/trials/*/*/control/*.draft"
_ABANDONED_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Leftover:
    """One file or folder that no process or experiment owns, and where it comes from."""

    path: Path
    origin: str
    size_bytes: int


def find(home: Home, store: Store) -> list[Leftover]:
    """Everything that killed processes left; drafts and folders only while no process submits."""
    found = [_leftover(path, "partly written file of a killed process") for path in _partly_written(home, store)]
    found += [_leftover(path, "socket of an earlier version") for path in _old_sockets(home)]
    with no_submitter(home) as alone:
        if alone:
            found += _of_submitters(home, store)
    return sorted(found, key=lambda leftover: leftover.path)


def remove(home: Home, store: Store) -> list[Leftover]:
    """Remove what `find` finds; gives what was removed."""
    removed = []
    with no_submitter(home) as alone:
        for leftover in _of_submitters(home, store) if alone else []:
            shutil.rmtree(leftover.path, ignore_errors=True)
            removed.append(leftover)
    for path in _old_sockets(home):
        removed.append(_leftover(path, "socket of an earlier version"))
        path.unlink(missing_ok=True)
    for path in _partly_written(home, store):
        removed.append(_leftover(path, "partly written file of a killed process"))
        path.unlink(missing_ok=True)
    return removed


def folder_bytes(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def without_row(home: Home, store: Store) -> list[Path]:
    """Folders of experiments that were kept or have run and have no row: the rows were lost with the store."""
    return [folder for folder in _unknown(home, store) if _was_kept(home, folder)]


def has_copy(home: Home, folder: Path) -> bool:
    """True where `doctor --repair` brings the experiment of this folder back."""
    return home.experiment_rows(folder.name).exists()


def _was_kept(home: Home, folder: Path) -> bool:
    return (folder / "trials").exists() or has_copy(home, folder)


def _of_submitters(home: Home, store: Store) -> list[Leftover]:
    drafts = home.drafts.iterdir() if home.drafts.is_dir() else ()
    found = [_leftover(path, "draft of a killed submit") for path in drafts]
    orphans = (folder for folder in _unknown(home, store) if not _was_kept(home, folder))
    return found + [_leftover(folder, "submit that was killed before it was kept") for folder in orphans]


def _unknown(home: Home, store: Store) -> list[Path]:
    folder = home.experiment("")
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    known = store.ids()  # read after the folders: a row comes after its folder
    return [path for path in there if path.name not in known]


def _partly_written(home: Home, store: Store) -> Iterator[Path]:
    for place in (*_PLACES, _CONTROL):
        for path in home.root.glob(place):
            if _is_abandoned(path, store):
                yield path


def _old_sockets(home: Home) -> list[Path]:
    """The socket that managers listened on before it was called `manager.sock`."""
    path = home.root / "doorbell"
    return [path] if path.is_socket() else []


def _is_abandoned(path: Path, store: Store) -> bool:
    named = _PARTLY_WRITTEN.fullmatch(path.name)
    if named is None or path.is_dir():
        return False
    if store.journal == "wal":
        return not system.exists(int(named[1]))
    # Several machines share this home: the writer may run on another one.
    return time.time() - path.stat().st_mtime > _ABANDONED_S


def _leftover(path: Path, origin: str) -> Leftover:
    return Leftover(path, origin, folder_bytes(path) if path.is_dir() else path.lstat().st_size)
