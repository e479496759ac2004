"""Which trials use an entry of a cache: a file per trial, `ROOT/users/DIGEST/NAME`, that holds its directory's path.

Runs on the trial's side: only the standard library of Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
import time

from jupyter_autotrain.core import wire
from jupyter_autotrain.worker import trial_lock

START_S = 600.0  # a trial that is to use an entry has begun by then


class CacheUsers:
    """The users of the entries of one cache; safe for several processes.

    Args:
        root: The folder of the cache.
    """

    def __init__(self, root: str) -> None:
        self._folder = f"{root}/users"

    def add(self, digest: str, directory: str) -> None:
        """Note that a trial uses an entry: it does while its supervisor lives, or has still to begin.

        Raises:
            OSError: It cannot be noted.
        """
        users = f"{self._folder}/{digest}"
        os.makedirs(users, mode=0o700, exist_ok=True)
        user = f"{users}/{directory.strip('/').replace('/', '~')[-200:]}"
        wire.write_atomically(user, directory.encode(), sync=False)

    def is_used(self, digest: str) -> bool:
        """Whether a trial uses an entry; notes of trials that have ended are removed."""
        users = f"{self._folder}/{digest}"
        names = os.listdir(users) if os.path.isdir(users) else []
        living = [name for name in names if self._lives(f"{users}/{name}")]
        return bool(living)

    def _lives(self, user: str) -> bool:
        """Whether the trial of this note runs, or has still to begin; else the note is removed."""
        with contextlib.suppress(OSError):
            with open(user, encoding="utf-8") as file:
                directory = file.read()
            if trial_lock.is_held(directory):
                return True
            has_begun = os.path.lexists(f"{directory}/{wire.STATUS_FILE}")
            if not has_begun and time.time() - os.stat(user).st_mtime < START_S:
                return True
            os.unlink(user)
        return False
