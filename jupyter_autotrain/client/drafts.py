"""Folders of experiments that are being submitted, so that a killed submitter leaves nothing behind."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jupyter_autotrain.core.home import Home


@contextmanager
def draft(home: Home, experiment_id: str) -> Iterator[Path]:
    """A new folder (0700), removed afterwards unless it was moved away; also removes those of killed submitters.

    All who submit hold a shared lock that goes with their process. So whoever gets it alone knows that every draft
    there is belongs to nobody.

    Raises:
        OSError: The folder cannot be made.
    """
    home.drafts.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(home.drafts, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Some network file systems lock no folders; there drafts of killed submitters stay.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in home.drafts.iterdir():
                shutil.rmtree(left, ignore_errors=True)
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
