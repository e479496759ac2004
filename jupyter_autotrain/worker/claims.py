"""The claim on a trial: a file that its living supervisor keeps locked (flock), and in it who that is.

The lock goes with the process, so it is a proof of life that needs no other file and no clock. What stands in the file
finds the processes of a trial whose `status.json` cannot be read.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.process_identity import ProcessIdentity

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_TRIES = 20
_PAUSE_S = 0.005


def take() -> int | None:
    """Take the trial in the current directory for this process and its children; gives the open claim.

    None when it was taken before, by a living supervisor or a dead one.

    Raises:
        OSError: It cannot be told.
    """
    fd = os.open(wire.CLAIM_FILE, _FLAGS, 0o600)
    if _lock(fd) and _has_no_status():
        return fd
    os.close(fd)
    return None


def _lock(fd: int) -> bool:
    for _ in range(_TRIES):  # somebody who only looks (`is_held`) holds it for a moment
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def _has_no_status() -> bool:
    try:
        os.lstat(wire.STATUS_FILE)
    except FileNotFoundError:
        return True
    return False


def sign(fd: int, supervisor: ProcessIdentity, groups: list[str]) -> None:
    """Write down who has taken the trial, and its control groups. In place: the lock is on this very file."""
    data = json.dumps({"supervisor": supervisor.to_json(), "groups": groups}).encode()
    with contextlib.suppress(OSError):  # on a full disk the lock alone must do
        os.ftruncate(fd, os.pwrite(fd, data, 0))


def is_held(directory: str) -> bool:
    """True while a supervisor of this trial lives, be it in another container or on another machine.

    Raises:
        OSError: It cannot be told.
    """
    try:
        with files.open_regular(directory, wire.CLAIM_FILE) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except files.NotRegularError:
        return False  # the trial's own code put it in the place of ours
    except OSError as error:
        if files.is_absent(error):
            return False
        raise
    return False


def signature(directory: str) -> dict[str, object]:
    """What `sign` wrote; empty when there is nothing, or nothing that can be read."""
    try:
        found = files.read_json(directory, wire.CLAIM_FILE)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
