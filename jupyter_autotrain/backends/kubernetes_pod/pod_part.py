"""What the pods of a trial know of their own part of it, and say to each other. Runs in the pod, with Python 3.9."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.worker import fields

PORT = 29400
WAIT_S = 900.0  # for all pods; a trial that does not get all of its nodes is ended by the manager earlier
PAUSE_S = 0.2
GOOD = frozenset({"SUCCEEDED", "EARLY_STOPPED"})
FINAL = frozenset({"SUCCEEDED", "EARLY_STOPPED", "FAILED", "CANCELLED", "PREEMPTED", "LOST"})
ENDED_BECAUSE = "Ended because the trial has ended on "
_GRACE_S = 5.0

Endpoint = list[Any]  # [address, [port, ...]]


class StatusFile:
    """The status of this node's part, read when it is another.

    Args:
        directory: The trial directory.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._known: tuple[int, int] = (0, 0)
        self.content: Mapping[str, object] = {}

    def read(self) -> Mapping[str, object]:
        """The content; empty before there is one."""
        with contextlib.suppress(OSError, ValueError):
            found = os.stat(f"{self.directory}/{wire.STATUS_FILE}")
            if (found.st_mtime_ns, found.st_ino) != self._known:
                self.content = fields.mapping(files.read_json(self.directory, wire.STATUS_FILE))
                self._known = (found.st_mtime_ns, found.st_ino)
        return self.content

    @property
    def state(self) -> str:
        """The state that it says."""
        return str(self.content.get("state") or "")


def told(status: StatusFile, node: int) -> str:
    """Why the other nodes end, when this one has ended."""
    return f"{ENDED_BECAUSE}node {node}: {status.content.get('reason') or status.state}"


def request_end(directory: str, reason: str) -> None:
    """Have the supervisor of this pod end its part."""
    request = json.dumps({"grace_s": _GRACE_S, "reason": reason}).encode()
    with contextlib.suppress(OSError):
        wire.write_atomically(f"{directory}/{wire.CANCEL_FILE}", request)


def tell(directory: str, name: str, data: bytes) -> None:
    """Write a file of the control folder for the supervisor of this pod.

    One that has just ended has cleared that folder, maybe between the draft of the file and its name: it waits for
    nothing any more.

    Raises:
        OSError: It cannot be written.
    """
    with contextlib.suppress(FileNotFoundError):
        wire.write_atomically(f"{directory}/{name}", data)
