"""Running a program on a host.

The user's login shell starts it and may print first, so every command is preceded by a mark, and what comes before the
mark is dropped.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence

from jupyter_autotrain.backends.ssh.transport import (
    PATIENCE_S,
    Channel,
    CommandResult,
    Deadline,
    NoAnswerError,
    Transport,
)
from jupyter_autotrain.errors import BackendError

LOGIN_S = 30.0  # a login shell that has not run a command by then never will
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%")
_HOME = "~/"
_MOST_GREETING_BYTES = 1 << 20
_MOST_OUTPUT_BYTES = 1 << 20
_SHOWN_BYTES = 1000
_SHOWN_CHARACTERS = 200


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

    def send(self, data: bytes, within_s: float = PATIENCE_S) -> None:
        """As `Channel.send`."""
        self._channel.send(data, within_s)

    def finish(self) -> None:
        """As `Channel.finish`."""
        self._channel.finish()

    def receive(self, within_s: float = PATIENCE_S) -> bytes:
        """As `Channel.receive`.

        Raises:
            BackendError: The login shell does not run the command.
        """
        if self._is_marked:
            return self._channel.receive(within_s)
        rest = self._pass_greeting(Deadline(LOGIN_S))
        self._is_marked = True
        return rest or self._channel.receive(within_s)

    def _pass_greeting(self, deadline: Deadline) -> bytes:
        """Read up to the mark; gives what came behind it."""
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
        """As `Channel.stderr`; without what came before the mark, where that is still kept."""
        kept = self._channel.stderr()
        before, mark, after = kept.partition(self._mark)
        return after if mark else before

    def exit_code(self, within_s: float = PATIENCE_S) -> int:
        """As `Channel.exit_code`."""
        return self._channel.exit_code(within_s)

    def close(self) -> None:
        """As `Channel.close`."""
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
    words = " ".join(quote(word) for word in argv)
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
