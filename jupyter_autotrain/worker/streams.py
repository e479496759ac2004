"""The output of one worker: straight into files, or through a pipe and a redactor when secrets are named."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from jupyter_autotrain.core import wire
from jupyter_autotrain.worker.event_waiter import EventWaiter
from jupyter_autotrain.worker.redact import Redactor

_READ_BYTES = 1 << 16
_MOST_READS = 16  # of one stream in one turn: endless output must not keep the supervisor from its other duties


class OutputStreams:
    """Stdout and stderr of one worker.

    Args:
        rank: The worker's rank.
        secrets: Values that must not reach the files.
        wake_up: What the supervisor waits on.
    """

    def __init__(self, rank: int, secrets: Sequence[str], event_waiter: EventWaiter) -> None:
        self._wake_up = event_waiter
        self._files = [_open(wire.stream_of_rank(name, rank)) for name in (wire.STDOUT, wire.STDERR)]
        self._pipes = [os.pipe() for _ in self._files] if secrets else []
        self._redactors = [Redactor(secrets) for _ in self._files]

    def child_side(self) -> None:
        """In the worker: make the streams its stdin, stdout and stderr."""
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(null, 0)
        for index, file in enumerate(self._files):
            os.dup2(self._pipes[index][1] if self._pipes else file, index + 1)

    def parent_side(self) -> None:
        """In the supervisor: keep only the reading ends."""
        for reader, writer in self._pipes:
            os.close(writer)
            os.set_blocking(reader, False)
            self._wake_up.add(reader)

    def pump(self) -> None:
        """Move what the worker has written so far from the pipes to the files."""
        for index, (reader, _) in enumerate(self._pipes):
            for _ in range(_MOST_READS):
                if not self._move(index, reader):
                    break

    def _move(self, index: int, reader: int) -> bool:
        try:
            data = os.read(reader, _READ_BYTES)
        except (BlockingIOError, OSError):
            return False
        if not data:
            self._wake_up.remove(reader)
            return False
        self._write(index, self._redactors[index].feed(data))
        return True

    def _write(self, index: int, data: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the trial
            while data:
                data = data[os.write(self._files[index], data) :]

    def finish(self) -> None:
        """Move what is left, once all writers are gone."""
        for index, (reader, _) in enumerate(self._pipes):
            while self._move(index, reader):
                pass
            self._write(index, self._redactors[index].finish())


def _open(name: str) -> int:
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
