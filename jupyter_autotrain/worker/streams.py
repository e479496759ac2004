"""The worker's streams: straight into files, or through a pipe and a redactor when secrets are named."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Sequence

from jupyter_autotrain.core import wire
from jupyter_autotrain.worker.redact import Redactor

_PIECE_BYTES = 1 << 16


class Streams:
    """Stdout and stderr of the worker, and the bell that wakes the supervisor.

    Args:
        secrets: Values that must not reach the files.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        self.asked_to_end = False
        self._poll = select.poll()
        self._bell, ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(ring, False)
        self._poll.register(self._bell, select.POLLIN)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._ask)
        for number in (signal.SIGINT, signal.SIGHUP):  # meant for a terminal, or for a kernel
            signal.signal(number, signal.SIG_IGN)
        self._files = [_open(name) for name in (wire.STDOUT, wire.STDERR)]
        self._pipes = [os.pipe2(os.O_CLOEXEC) for _ in self._files] if secrets else []
        self._redactors = [Redactor(secrets) for _ in self._files]

    def _ask(self, *_: object) -> None:
        self.asked_to_end = True

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
            self._poll.register(reader, select.POLLIN)

    def wait(self, timeout_s: float) -> None:
        """Wait for a signal, for output to redact, or for the time to pass."""
        ready = {fd for fd, _ in self._poll.poll(timeout_s * 1000)}
        if self._bell in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._bell, _PIECE_BYTES)
        if ready - {self._bell}:
            self.pump()

    def pump(self) -> None:
        """Move what the worker has said so far from the pipes to the files."""
        for index, (reader, _) in enumerate(self._pipes):
            for _ in range(16):  # bounded, so that a stream of output cannot keep us from the other duties
                if not self._move(index, reader):
                    break

    def _move(self, index: int, reader: int) -> bool:
        try:
            data = os.read(reader, _PIECE_BYTES)
        except (BlockingIOError, OSError):
            return False
        if not data:
            with contextlib.suppress(KeyError):
                self._poll.unregister(reader)
            return False
        self._write(index, self._redactors[index].feed(data))
        return True

    def _write(self, index: int, data: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the trial
            while data:
                data = data[os.write(self._files[index], data) :]

    def finish(self) -> None:
        """Take what is left, once all writers are gone."""
        for index, (reader, _) in enumerate(self._pipes):
            while self._move(index, reader):
                pass
            self._write(index, self._redactors[index].finish())


def _open(name: str) -> int:
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
