"""What a connection to a host can do, whichever program or library makes it.

A connection runs commands, each on a channel of its own (see `remote_command`).

Nothing here waits without an end: a host may acknowledge all that is sent to it and yet never answer, as one whose
processes are stopped, or whose home folder lies on a server that is gone.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from jupyter_autotrain.errors import BackendUnavailableError

MOST_BYTES = 1 << 16  # in one piece of a channel
MOST_STDERR_BYTES = 1 << 14
MOST_CHANNELS = 8  # servers allow 10 by default, and count one that was just closed
CONNECT_S = 15.0
KEEPALIVE_S = 1  # how often an idle connection is tried
SILENCE_S = 4  # a connection that does not answer for so long is lost
PATIENCE_S = 60.0  # a program that takes or prints nothing for so long is given up
_SLOT_S = 5.0


class LinkLostError(BackendUnavailableError):
    """The connection to a host does not answer any more; what runs there goes on."""


class NoAnswerError(LinkLostError):
    """A program on a host neither takes nor prints anything, for longer than it was waited for.

    Args:
        found: What was found.
        expected: What was expected.
        action: What to do next.
    """


class HostKeyError(BackendUnavailableError):
    """The host's key is not known, or is not the known one.

    Args:
        found: What was found.
        expected: What was expected.
        action: What to do next.
    """


@dataclass(frozen=True, slots=True)
class HostKey:
    """A host's public key: its type, and its bytes as in `known_hosts` (base64)."""

    type: str
    base64: str


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command gave; of its standard error the end only."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class Deadline:
    """A moment after which nothing is waited for any more.

    Args:
        within_s: How far away it is.
    """

    def __init__(self, within_s: float) -> None:
        self.within_s = within_s
        self._at_s = time.monotonic() + within_s

    @property
    def left_s(self) -> float:
        """Return how long it takes still; 0 when it has passed."""
        return max(self._at_s - time.monotonic(), 0.0)


class Channel(Protocol):
    """A command that runs on a host, with its standard streams. One thread may send while another receives."""

    def send(self, data: bytes, within_s: float = PATIENCE_S) -> None:
        """Send all of it to the command's standard input.

        Raises:
            NoAnswerError: The command has taken nothing for so long.
            LinkLostError: The connection is gone.
            BrokenPipeError: The command reads no more.
        """
        ...

    def finish(self) -> None:
        """Close the command's standard input."""
        ...

    def receive(self, within_s: float = PATIENCE_S) -> bytes:
        """Wait for what the command prints next; empty at its end.

        Raises:
            NoAnswerError: The command has printed nothing for so long.
            LinkLostError: The connection is gone.
        """
        ...

    def stderr(self) -> bytes:
        """The end of what it has printed on standard error so far."""
        ...

    def exit_code(self, within_s: float = PATIENCE_S) -> int:
        """Wait for the command's end; negative where a signal ended it.

        Raises:
            NoAnswerError: It has not ended by then.
            LinkLostError: The connection is gone.
        """
        ...

    def close(self) -> None:
        """Give it up; the command's standard input and output are closed."""
        ...


class Transport(Protocol):
    """One connection to one host; thread-safe. A lost one stays lost: make another."""

    def start(self, command: str) -> Channel:
        """Give a text to the user's login shell there.

        Raises:
            LinkLostError: The connection is gone.
            BackendError: The host allows no more channels.
        """
        ...

    def is_alive(self) -> bool:
        """False as soon as the connection is known to be gone."""
        ...

    def close(self) -> None:
        """End the connection, and all its channels."""
        ...


def take_slot(slots: threading.Semaphore, is_alive: Callable[[], bool], name: str) -> None:
    """Wait for a channel to become free; those in use end by themselves, or with the connection.

    Raises:
        LinkLostError: The connection to the host of this name is gone.
    """
    while not slots.acquire(timeout=_SLOT_S):
        if not is_alive():
            raise lost(name)


def lost(name: str, why: str = "") -> LinkLostError:
    """Make the error of a host whose connection is gone."""
    return LinkLostError(
        f"{name} does not answer{why}.", "A host that answers.", "It is tried again; what runs there goes on."
    )


def no_answer(name: str, within_s: float) -> NoAnswerError:
    """Make the error of a host that has not answered in time."""
    return NoAnswerError(
        f"{name} has not answered within {within_s:.0f} s.",
        "A host that answers.",
        "It is tried again; what runs there goes on.",
    )


class TailBuffer:
    """The last bytes of a stream."""

    def __init__(self, most_bytes: int = MOST_STDERR_BYTES) -> None:
        self._pieces: deque[bytes] = deque()
        self._size_bytes = 0
        self._most_bytes = most_bytes

    def add(self, piece: bytes) -> None:
        """Put a piece at the end; what is too old goes."""
        self._pieces.append(piece)
        self._size_bytes += len(piece)
        while self._size_bytes - len(self._pieces[0]) >= self._most_bytes:
            self._size_bytes -= len(self._pieces.popleft())

    def bytes(self) -> bytes:
        """What is kept."""
        return b"".join(self._pieces)
