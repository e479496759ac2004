"""The output of workers, and the wait for it and for signals.

The output of a worker goes straight into files, or through a pipe and a redactor when secrets are named.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Sequence

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.trial.redact import Redactor

_PIPE_BYTES = 1 << 16
_READ_BYTES = 1 << 16
_MOST_READS = 16  # of one stream in one turn: endless output must not keep the supervisor from its other duties


class EventWaiter:
    """One poll over a pipe that signals write to, and any other descriptors. There is one per process.

    `SIGCHLD` and `SIGTERM` end a wait; `sigterm_s` is when the first of the latter came. `SIGINT` and `SIGHUP`, which
    are meant for a terminal or a kernel, are ignored.
    """

    def __init__(self) -> None:
        self.sigterm_s = 0.0  # on the clock of `time.monotonic`
        self._poll = select.poll()
        self._reader, writer = os.pipe()
        for end in (self._reader, writer):
            os.set_blocking(end, False)
        self._poll.register(self._reader, select.POLLIN)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    @property
    def got_sigterm(self) -> bool:
        """True when a SIGTERM has come."""
        return self.sigterm_s > 0.0

    def _on_sigterm(self, *_: object) -> None:
        self.sigterm_s = self.sigterm_s or time.monotonic()

    def add(self, fd: int) -> None:
        """Wait for this descriptor, too."""
        self._poll.register(fd, select.POLLIN)

    def remove(self, fd: int) -> None:
        """Wait for this descriptor no more; do nothing when it is not waited for."""
        with contextlib.suppress(KeyError):
            self._poll.unregister(fd)

    def wait(self, timeout_s: float) -> bool:
        """Wait for a signal, a descriptor, or the time to pass.

        Returns True when a descriptor other than our own is ready.
        """
        ready = {fd for fd, _ in self._poll.poll(timeout_s * 1000)}
        if self._reader in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._reader, _PIPE_BYTES)
        return bool(ready - {self._reader})


def reset_signals() -> None:
    """Give a forked process the signal handling that a program expects at its start."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


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
        """Make the streams stdin, stdout and stderr of the worker, which calls this."""
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(null, 0)
        for index, file in enumerate(self._files):
            os.dup2(self._pipes[index][1] if self._pipes else file, index + 1)

    def parent_side(self) -> None:
        """Keep only the reading ends, in the supervisor."""
        for reader, writer in self._pipes:
            os.close(writer)
            os.set_blocking(reader, False)
            self._wake_up.add(reader)

    def pump(self) -> None:
        """Move the worker's output so far from the pipes to the files."""
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
        """Move the output that is left, once all writers are gone."""
        for index, (reader, _) in enumerate(self._pipes):
            while self._move(index, reader):
                pass
            self._write(index, self._redactors[index].finish())


def _open(name: str) -> int:
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
