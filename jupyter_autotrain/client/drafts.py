"""Folders of experiments that are being submitted, so that a killed submitter leaves nothing behind.

Every submitter holds a shared lock that ends with its process. A process that gets the lock exclusively therefore
knows that no submitter owns any draft, or any experiment's folder without a row in the store.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jupyter_autotrain.core.home import Home


@contextmanager
def draft(home: Home, experiment_id: str) -> Iterator[Path]:
    """A new folder (0700), removed afterwards unless it was moved; also removes the drafts of killed submitters.

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
