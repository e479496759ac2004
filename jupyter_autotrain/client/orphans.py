"""Leftovers of killed processes in a home: drafts, folders of failed submits, partly written files.

Folders of experiments that are being submitted, so that a killed submitter leaves nothing behind. Every submitter
holds a shared lock that ends with its process. A process that gets the lock exclusively therefore knows that no
submitter owns any draft, or any experiment's folder without a row in the store.

Nothing that is still being written counts: submitters hold a lock that ends with their process, and the name of a
partly written file holds the id of the process that writes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store import Store


@contextmanager
def draft(home: Home, experiment_id: str) -> Iterator[Path]:
    """Yield a new folder (0700), removed afterwards unless it was moved; also removes the drafts of killed submitters.

    The block has to last until the experiment is in the store.

    Raises:
        OSError: The folder cannot be made.
    """
    lock = _open(home)
    try:
        if _try_exclusive(lock):
            for left in home.drafts.iterdir():
                shutil.rmtree(left, ignore_errors=True)
        # Some network file systems lock no folders; there drafts of killed submitters stay.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_SH)
        folder = home.drafts / experiment_id
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


@contextmanager
def no_submitter(home: Home, *, wait: bool = False) -> Iterator[bool]:
    """Prevent submissions during the block; gives False while another process submits.

    Args:
        home: The home.
        wait: True to wait for the present submitters.
    """
    lock = _open(home)
    try:
        if wait:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield wait or _try_exclusive(lock)
    finally:
        os.close(lock)


def discard(home: Home, experiment_id: str) -> None:
    """Move the folder of an experiment to the drafts, so that it is removed whatever happens next."""
    home.drafts.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        home.experiment(experiment_id).rename(home.drafts / experiment_id)


def _open(home: Home) -> int:
    home.drafts.mkdir(mode=0o700, exist_ok=True)
    return os.open(home.drafts, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _try_exclusive(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in {errno.EAGAIN, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF}:
            raise
        return False
    return True


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
    found = list(_single_files(home, store))
    with no_submitter(home) as alone:
        if alone:
            found += _of_submitters(home, store)
    return sorted(found, key=lambda leftover: leftover.path)


def remove(home: Home, store: Store) -> list[Leftover]:
    """Remove what `find` finds; gives what was removed."""
    removed = []
    with no_submitter(home) as alone:
        for leftover in list(_of_submitters(home, store)) if alone else []:
            shutil.rmtree(leftover.path, ignore_errors=True)
            removed.append(leftover)
    for leftover in _single_files(home, store):
        removed.append(leftover)
        leftover.path.unlink(missing_ok=True)
    return removed


def summary(found: Sequence[Leftover]) -> tuple[str, str]:
    """Return the size of all, as text, and where they come from."""
    total_bytes = 0
    origins: set[str] = set()
    for leftover in found:
        total_bytes += leftover.size_bytes
        origins.add(leftover.origin)
    return format_bytes(total_bytes), ", ".join(sorted(origins))


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def without_row(home: Home, store: Store) -> list[Path]:
    """Folders of experiments that were kept or have run and have no row: the rows were lost with the store."""
    return [folder for folder in _unknown(home, store) if _was_kept(home, folder)]


def has_copy(home: Home, folder: Path) -> bool:
    """Return True where `doctor --repair` brings the experiment of this folder back."""
    return home.experiment_rows(folder.name).exists()


def _was_kept(home: Home, folder: Path) -> bool:
    return (folder / "trials").exists() or has_copy(home, folder)


def _of_submitters(home: Home, store: Store) -> Iterator[Leftover]:
    for path in home.drafts.iterdir() if home.drafts.is_dir() else ():
        yield _leftover(path, "draft of a killed submit")
    for folder in _unknown(home, store):
        if not _was_kept(home, folder):
            yield _leftover(folder, "submit that was killed before it was kept")


def _single_files(home: Home, store: Store) -> Iterator[Leftover]:
    for path in _old_sockets(home):
        yield _leftover(path, "socket of an earlier version")
    for path in _partly_written(home, store):
        yield _leftover(path, "partly written file of a killed process")


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
    """Return the socket that managers listened on before it was called `manager.sock`."""
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
