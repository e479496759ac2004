"""From the job watchers to the main thread: a bounded queue that can be selected on.

Bounded, so that watchers wait when the main thread cannot write to a full disk: what they would read stays safe in the
trials' files.
"""

from __future__ import annotations

import queue
import socket
from contextlib import suppress

from jupyter_autotrain.manager.events import Event

_CAPACITY = 256


class EventQueue:
    """Many threads `emit`, one `drain`s."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Event] = queue.Queue(_CAPACITY)
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)

    def emit(self, event: Event) -> None:
        """Post an event; blocks while the queue is full."""
        self._queue.put(event)
        self.wake()

    def wake(self) -> None:
        """Make `fileno` readable; safe in a signal handler."""
        with suppress(BlockingIOError):  # full of wake-ups that are not read yet
            self._sender.send(b"!")

    def drain(self) -> list[Event]:
        """Everything posted since the last call."""
        with suppress(BlockingIOError):
            while self._receiver.recv(4096):
                pass
        events = []
        with suppress(queue.Empty):
            while True:
                events.append(self._queue.get_nowait())
        return events

    def fileno(self) -> int:
        """What to select on."""
        return self._receiver.fileno()

    def close(self) -> None:
        """Give the sockets back."""
        self._receiver.close()
        self._sender.close()
