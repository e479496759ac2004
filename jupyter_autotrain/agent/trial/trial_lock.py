"""The lock on a trial: a file that its living supervisor keeps locked (flock), with the supervisor's identity in it.

The lock ends with the process, so it proves life with no other file and no clock. What the file holds finds the
processes of a trial whose `status.json` cannot be read.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_TRIES = 20
_PAUSE_S = 0.005


def acquire() -> int | None:
    """Lock the trial in the current directory for this process and its children; return the open lock file.

    Returns None when it was locked before, by a living supervisor or a dead one.

    Raises:
        OSError: It cannot be looked at.
    """
    fd = os.open(wire.LOCK_FILE, _FLAGS, 0o600)
    if _lock(fd) and _has_no_status():
        return fd
    os.close(fd)
    return None


def _lock(fd: int) -> bool:
    for _ in range(_TRIES):  # a look at it (`is_held`) holds it for a moment
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


def write_owner(fd: int, supervisor: ProcessIdentity, cgroups: list[str]) -> None:
    """Write down the lock's holder, and the trial's control groups. In place: the lock is on this very file."""
    data = json.dumps({"supervisor": supervisor.to_json(), "groups": cgroups}).encode()
    with contextlib.suppress(OSError):  # a full disk: the lock alone has to do
        os.ftruncate(fd, os.pwrite(fd, data, 0))


def is_held(directory: str) -> bool:
    """Tell whether a supervisor of this trial lives, also in another container or on another machine.

    Raises:
        OSError: It cannot be looked at.
    """
    try:
        with files.open_regular(directory, wire.LOCK_FILE) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except files.NotRegularError:
        return False  # put there by the trial's own code
    except OSError as error:
        if files.is_absent(error):
            return False
        raise
    return False


def read_owner(directory: str) -> dict[str, object]:
    """Return the content that `write_owner` wrote; empty when there is nothing, or nothing that can be read."""
    try:
        found = files.read_json(directory, wire.LOCK_FILE)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
