"""Follows files of running trials that the logs of their pods do not tell, each over one command in its pod."""

from __future__ import annotations

from collections import deque
from typing import Final

from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.core.backend import Cursor

_PROGRAM: Final = """
import select, sys
with open(sys.argv[1], "rb") as file:
    file.seek(int(sys.argv[2]))
    while True:
        data = file.read(1 << 20)
        if data:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        elif select.select([0], [], [], 0.01)[0]:
            break
"""  # standard input ends with the connection


class FileFollowers:
    """The files that are followed, by their trials and paths."""

    def __init__(self) -> None:
        self._followers: dict[tuple[str, str], _Follower] = {}

    def read(self, api: KubernetesApi, at: PodAddress, cursor: Cursor) -> bytes:
        """Return what has come of a file from the cursor on; b"" where nothing has, or the file is not there yet.

        Args:
            api: The cluster.
            at: The pod that has the file.
            cursor: Its trial, its path in the trial directory, and the first byte that is wanted.
        """
        key = (cursor.ref.job_id, cursor.stream)
        known = self._followers.get(key)
        if known is None or known.offset != cursor.offset or known.is_over:
            if known is not None:
                known.close()
            known = self._followers[key] = _Follower(api, at, cursor)
        return known.take()

    def close(self) -> None:
        """Follow none of them any more."""
        for follower in self._followers.values():
            follower.close()
        self._followers.clear()


class _Follower:
    def __init__(self, api: KubernetesApi, at: PodAddress, cursor: Cursor) -> None:
        path = f"{places.TRIAL_DIRECTORY}/{cursor.stream}"
        command = [at.python, "-I", "-S", "-c", _PROGRAM, path, str(cursor.offset)]
        self.offset = cursor.offset  # of the next byte that is taken
        self._come: deque[bytes] = deque()
        self._following = api.loop.start(exec_command.follow(api, at, command, self._come.append))

    @property
    def is_over(self) -> bool:
        """True when nothing more comes: the connection was cut off, or there is no such file."""
        return self._following.done() and not self._come

    def take(self) -> bytes:
        """Return what has come since the last call."""
        data = b"".join(self._come.popleft() for _ in range(len(self._come)))
        self.offset += len(data)
        return data

    def close(self) -> None:
        """End the command."""
        self._following.cancel()
