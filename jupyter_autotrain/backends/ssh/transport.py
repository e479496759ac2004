"""What a connection to a host can do, whichever program or library makes it.

A connection runs commands, each on a channel of its own. The user's login shell starts them and may print first, so
every command is preceded by a mark, and what comes before the mark is dropped.
"""

from __future__ import annotations

import contextlib
import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jupyter_autotrain.errors import BackendError, BackendUnavailableError

MOST_BYTES = 1 << 16  # in one piece of a channel
MOST_STDERR_BYTES = 1 << 14
MOST_CHANNELS = 8  # servers allow 10 by default, and count one that was just closed
CONNECT_S = 15.0
KEEPALIVE_S = 1  # how often an idle connection is tried
SILENCE_S = 4  # a connection that does not answer for so long is lost
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%")
_HOME = "~/"
_MOST_GREETING_BYTES = 1 << 20


class LinkLostError(BackendUnavailableError):
    """The connection to a host does not answer any more; what runs there goes on."""


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


class Channel(Protocol):
    """A command that runs on a host, with its standard streams. One thread may send while another receives."""

    def send(self, data: bytes) -> None:
        """Send all of it to the command's standard input.

        Raises:
            LinkLostError: The connection is gone.
            BrokenPipeError: The command reads no more.
        """
        ...

    def finish(self) -> None:
        """Close the command's standard input."""
        ...

    def receive(self) -> bytes:
        """Wait for what the command prints next; empty at its end.

        Raises:
            LinkLostError: The connection is gone.
        """
        ...

    def stderr(self) -> bytes:
        """The end of what it has printed on standard error so far."""
        ...

    def exit_code(self) -> int:
        """Wait for the command's end; negative where a signal ended it.

        Raises:
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


def quote(word: str) -> str:
    """A word as every common login shell (sh, bash, zsh, fish, csh) reads it; `~/` at its beginning stays the home.

    Raises:
        BackendError: It holds a character that they read differently.
    """
    if word.startswith(_HOME) and word != _HOME:
        return _HOME + quote(word.removeprefix(_HOME))
    if word and set(word) <= _PLAIN:
        return word
    if set(word) & set("'\\!\n"):
        raise BackendError(f"{word!r} cannot be said to every login shell.", "A word without quotes, \\ and !.")
    return f"'{word}'"


class MarkedChannel:
    """A channel whose output begins after the mark that precedes the command's own output."""

    def __init__(self, channel: Channel, mark: bytes, name: str) -> None:
        self._channel = channel
        self._mark = mark
        self._name = name
        self._is_marked = False

    def send(self, data: bytes) -> None:
        """As `Channel.send`."""
        self._channel.send(data)

    def finish(self) -> None:
        """As `Channel.finish`."""
        self._channel.finish()

    def receive(self) -> bytes:
        """As `Channel.receive`.

        Raises:
            BackendError: The login shell ended without running the command.
        """
        if self._is_marked:
            return self._channel.receive()
        seen = bytearray()
        while self._mark not in seen:
            piece = self._channel.receive()
            seen += piece
            if not piece or len(seen) > _MOST_GREETING_BYTES:
                raise self._not_run(bytes(seen))
        self._is_marked = True
        rest = bytes(seen.partition(self._mark)[2])
        return rest or self._channel.receive()

    def stderr(self) -> bytes:
        """As `Channel.stderr`; without what came before the mark, where that is still kept."""
        kept = self._channel.stderr()
        before, mark, after = kept.partition(self._mark)
        return after if mark else before

    def exit_code(self) -> int:
        """As `Channel.exit_code`."""
        return self._channel.exit_code()

    def close(self) -> None:
        """As `Channel.close`."""
        self._channel.close()

    def _not_run(self, seen: bytes) -> BackendError:
        printed = (seen + self.stderr()).decode(errors="replace").strip().splitlines()
        last = f" It printed last: {printed[-1][:200]}" if printed else ""
        return BackendError(
            f"The login shell of {self._name} ended before it ran the command.{last}",
            "A login shell that runs `ssh HOST COMMAND`.",
            "Run `ssh HOST true` in a terminal and mend the account's start-up files.",
        )


def start(transport: Transport, argv: Sequence[str], name: str) -> Channel:
    """Run a program on a host.

    Args:
        transport: The connection.
        argv: The program and its arguments, each fit for `quote`.
        name: The host, for messages.
    """
    mark = f"autotrain-{secrets.token_hex(8)}"
    words = " ".join(quote(word) for word in argv)
    channel = transport.start(f"echo {mark}; echo {mark} >&2; exec {words}")
    return MarkedChannel(channel, f"{mark}\n".encode(), name)


def run(transport: Transport, argv: Sequence[str], name: str, stdin: bytes = b"") -> CommandResult:
    """Run a program on a host to its end; arguments as `start`."""
    channel = start(transport, argv, name)
    try:
        with contextlib.suppress(BrokenPipeError):  # it has ended, and its exit code says why
            if stdin:
                channel.send(stdin)
            channel.finish()
        pieces = []
        while piece := channel.receive():
            pieces.append(piece)
        return CommandResult(channel.exit_code(), b"".join(pieces), channel.stderr())
    finally:
        channel.close()
