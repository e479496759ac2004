"""One submission at a time, of all processes on the login node."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_FILE = "submit.lock"


@contextlib.contextmanager
def held(root: Path) -> Iterator[None]:
    """Hold the lock of the folder of everything of ours, which is made where it is missing.

    Raises:
        OSError: It cannot be made.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(root / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
