"""The messages to a supervisor from ranks that a launcher started: a pipe per local rank, a line per message.

Messages are `{"process": identity}` when its worker has begun (again), and
`{"exit_status": int, "terminated": bool, "outcome": {...}}` when it has ended; `terminated` when the launcher ended it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping

from jupyter_autotrain.agent import files, wire

_READ_BYTES = 1 << 16


def path_of(directory: str, local_rank: int) -> str:
    """Return the path of a local rank's pipe."""
    return f"{directory}/{wire.CONTROL}/rank-{local_rank}"


def open_for_writing(directory: str, local_rank: int) -> int:
    """Open the rank's end of its pipe."""
    return os.open(path_of(directory, local_rank), os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def write(fd: int, message: Mapping[str, object]) -> None:
    """Send a message; a supervisor that is gone needs none."""
    view = memoryview(json.dumps(message).encode() + b"\n")
    with contextlib.suppress(BrokenPipeError):
        while view:
            view = view[os.write(fd, view) :]


class RankChannel:
    """The supervisor's end of a rank's pipe.

    Args:
        directory: The trial directory.
        local_rank: Whose it is.
    """

    def __init__(self, directory: str, local_rank: int) -> None:
        path = path_of(directory, local_rank)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.mkfifo(path, 0o600)
        # Its own writing end keeps it open while no rank has it.
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._rest = b""

    def read(self) -> list[dict[str, object]]:
        """Return the new messages."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.fd, _READ_BYTES):
                self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):  # the trial's own code may write here, too
                message = files.parse_json(line)
                if isinstance(message, dict):
                    found.append(message)
        return found
