"""The writing of `status.json` from inside the trial directory, on disks that may be full."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping

from jupyter_autotrain.agent import durable, wire
from jupyter_autotrain.agent.system import disk

FINAL_TIMEOUT_S = 3600.0  # how long a full disk is waited out for the final status
_TRY_AGAIN_S = 0.5
_MISSING_S = 1.0
_IN_PLACE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class StatusFile:
    """The status of one trial; only its supervisor writes it.

    Args:
        content: What it says at first.
    """

    def __init__(self, content: Mapping[str, object]) -> None:
        self._content = dict(content)
        self._missing_since_s: float | None = None

    def add(self, changes: Mapping[str, object]) -> None:
        """Keep changes for the next write."""
        self._content.update(changes)

    def write(self, changes: Mapping[str, object] | None = None, *, timeout_s: float = 0.0) -> None:
        """Change the file. With a timeout, do so durably: a full disk is waited out that long.

        Raises:
            OSError: It cannot be written.
        """
        self._content.update(changes or {})
        data = json.dumps(self._content).encode()
        deadline = time.monotonic() + timeout_s
        while not self._replace(data, is_last_try=time.monotonic() >= deadline, sync=timeout_s > 0):
            time.sleep(_TRY_AGAIN_S)

    def is_abandoned(self) -> bool:
        """Tell whether the trial directory is deleted.

        A status file that alone is gone for a while is written again.
        """
        now = time.monotonic()
        if os.stat(".").st_nlink == 0:
            return True
        try:
            os.lstat(wire.STATUS_FILE)
        except FileNotFoundError:
            self._missing_since_s = self._missing_since_s or now
        except OSError:
            return False  # it cannot be looked at
        else:
            self._missing_since_s = None
        if self._missing_since_s is None or now - self._missing_since_s < _MISSING_S:
            return False
        return not self._write_again()

    def _write_again(self) -> bool:
        try:
            self.write()
        except FileNotFoundError:
            return False
        except OSError:
            return True  # a full disk: the next look tries again
        return True

    def _replace(self, data: bytes, *, is_last_try: bool, sync: bool) -> bool:
        try:
            wire.write_atomically(wire.STATUS_FILE, data, sync=sync)
        except FileNotFoundError:
            raise  # a deleted trial directory does not come back
        except IsADirectoryError:  # the trial's own code put it there
            os.rename(wire.STATUS_FILE, f"{wire.STATUS_FILE}-{time.time_ns()}")
            return False
        except PermissionError:  # as above: the directory is ours, so its mode is ours to mend
            os.chmod(".", 0o700)
            if is_last_try:
                raise
            return False
        except OSError as error:
            if disk.is_full(error) and _overwrite(data):
                return True
            if is_last_try:
                raise
            return False
        return True


def _overwrite(data: bytes) -> bool:
    """Write into the blocks that the file has, where a full disk has none for another; return True when it is done.

    Not atomic: a reader that meets a half takes it for damaged, and looks again.
    """
    with contextlib.suppress(OSError):
        fd = os.open(wire.STATUS_FILE, _IN_PLACE)
        try:
            if len(data) > os.fstat(fd).st_blocks * 512 or os.pwrite(fd, data, 0) != len(data):
                return False
            os.ftruncate(fd, len(data))
            durable.sync(fd)
        finally:
            os.close(fd)
        return True
    return False
