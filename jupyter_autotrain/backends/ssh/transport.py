"""The abilities of a connection to a host, whichever program or library makes it, and running a program over it.

A connection runs commands, each on a channel of its own.

Nothing here waits without an end: a host may acknowledge all that is sent to it and yet never answer, as one whose
processes are stopped, or whose home folder lies on a server that is gone.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from jupyter_autotrain.backends.transfer.channels import PATIENCE_S, Channel, Deadline, NoAnswerError, lost
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

MOST_CHANNELS = 8  # servers allow 10 by default, and count one that was just closed
CONNECT_S = 15.0
KEEPALIVE_S = 1  # how often an idle connection is tried
SILENCE_S = 4  # a connection that does not answer for so long is lost
_SLOT_S = 5.0
LOGIN_S = 30.0  # a login shell that has not run a command by then never will
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%")
_HOME = "~/"
_MOST_GREETING_BYTES = 1 << 20
_MOST_OUTPUT_BYTES = 1 << 20
_SHOWN_BYTES = 1000
_SHOWN_CHARACTERS = 200


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
    """The result of a command, with only the end of its standard error."""

    exit_code: int
    stdout: bytes
    stderr: bytes


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
        """Tell whether the connection lives: false as soon as it is known to be gone."""
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


def quote(word: str) -> str:
    """Return a word as every common login shell (sh, bash, zsh, fish, csh) reads it.

    A `~/` at its beginning stays the home.

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

    def send(self, data: bytes, within_s: float = PATIENCE_S) -> None:
        """Do the same as `Channel.send`."""
        self._channel.send(data, within_s)

    def finish(self) -> None:
        """Do the same as `Channel.finish`."""
        self._channel.finish()

    def receive(self, within_s: float = PATIENCE_S) -> bytes:
        """Do the same as `Channel.receive`.

        Raises:
            BackendError: The login shell does not run the command.
        """
        if self._is_marked:
            return self._channel.receive(within_s)
        rest = self._pass_greeting(Deadline(LOGIN_S))
        self._is_marked = True
        return rest or self._channel.receive(within_s)

    def _pass_greeting(self, deadline: Deadline) -> bytes:
        """Read up to the mark, and return the bytes that came behind it."""
        seen = bytearray()
        looked = 0
        while (at := seen.find(self._mark, looked)) < 0:
            looked = max(len(seen) - len(self._mark), 0)
            late = f"has not run a command within {deadline.within_s:.0f} s"
            try:
                piece = self._channel.receive(deadline.left_s)
            except NoAnswerError:
                raise self._not_run(bytes(seen), late) from None
            seen += piece
            if not piece:
                raise self._not_run(bytes(seen), "ended before it ran the command")
            if len(seen) > _MOST_GREETING_BYTES:
                raise self._not_run(bytes(seen), "prints without end before it runs the command")
            if not deadline.left_s:
                raise self._not_run(bytes(seen), late)
        return bytes(seen[at + len(self._mark) :])

    def stderr(self) -> bytes:
        """Do the same as `Channel.stderr`, without what came before the mark, where that is still kept."""
        kept = self._channel.stderr()
        before, mark, after = kept.partition(self._mark)
        return after if mark else before

    def exit_code(self, within_s: float = PATIENCE_S) -> int:
        """Do the same as `Channel.exit_code`."""
        return self._channel.exit_code(within_s)

    def close(self) -> None:
        """Do the same as `Channel.close`."""
        self._channel.close()

    def _not_run(self, seen: bytes, what: str) -> BackendError:
        printed = (seen[-_SHOWN_BYTES:] + self.stderr()).decode(errors="replace").strip().splitlines()
        last = f" It printed last: {printed[-1][:_SHOWN_CHARACTERS]}" if printed else ""
        return BackendError(
            f"The login shell of {self._name} {what}.{last}",
            "A login shell that runs `ssh HOST COMMAND`.",
            f"Run `ssh {self._name} true` in a terminal and mend the account's start-up files.",
        )


def start(transport: Transport, argv: Sequence[str], name: str) -> Channel:
    """Run a program on a host.

    Args:
        transport: The connection.
        argv: The program and its arguments, each fit for `quote`.
        name: The host, for messages.
    """
    mark = f"autotrain-{secrets.token_hex(8)}"
    words = " ".join(map(quote, argv))
    channel = transport.start(f"echo {mark}; echo {mark} >&2; exec {words}")
    return MarkedChannel(channel, f"{mark}\n".encode(), name)


def run(
    transport: Transport, argv: Sequence[str], name: str, stdin: bytes = b"", within_s: float = PATIENCE_S
) -> CommandResult:
    """Run a program on a host to its end; arguments as `start`.

    Raises:
        BackendError: It prints without end, or has not ended by then.
        LinkLostError: The connection is gone.
    """
    channel = start(transport, argv, name)
    try:
        with contextlib.suppress(BrokenPipeError):  # it has ended, and its exit code says why
            if stdin:
                channel.send(stdin)
            channel.finish()
        stdout = _all_of(channel, argv[0], name, Deadline(within_s))
        return CommandResult(channel.exit_code(), stdout, channel.stderr())
    finally:
        channel.close()


def _all_of(channel: Channel, program: str, name: str, deadline: Deadline) -> bytes:
    """Read all that a program prints."""
    stdout = bytearray()
    while piece := channel.receive(deadline.left_s):
        stdout += piece
        if len(stdout) > _MOST_OUTPUT_BYTES or not deadline.left_s:
            raise BackendError(
                f"{program} on {name} prints without end: {bytes(stdout[:_SHOWN_CHARACTERS])!r}",
                "A program that prints what it is asked for and ends.",
                "Name another one in the profile.",
            )
    return bytes(stdout)
