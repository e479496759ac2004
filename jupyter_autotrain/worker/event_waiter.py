"""What a supervisor waits for: signals, and output of its workers that it has to pass on."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

_PIPE_BYTES = 1 << 16


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
        """Whether one came."""
        return self.sigterm_s > 0.0

    def _on_sigterm(self, *_: object) -> None:
        self.sigterm_s = self.sigterm_s or time.monotonic()

    def add(self, fd: int) -> None:
        """Wait for this descriptor, too."""
        self._poll.register(fd, select.POLLIN)

    def remove(self, fd: int) -> None:
        """Wait for it no more; nothing happens when it is not waited for."""
        with contextlib.suppress(KeyError):
            self._poll.unregister(fd)

    def wait(self, timeout_s: float) -> bool:
        """Wait for a signal, a descriptor, or the time to pass; true when a descriptor other than our own is ready."""
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
