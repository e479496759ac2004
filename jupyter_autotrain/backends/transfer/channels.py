"""A byte stream to a program at a place: its standard streams, whichever way leads there.

Nothing here waits without an end: a place may acknowledge all that is sent to it and yet never answer, as one whose
processes are stopped, or whose files lie on a server that is gone.

`ProcessChannel` leads to a program of this machine, which works on a folder here or leads to another machine.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import IO, Protocol

from jupyter_autotrain.errors import BackendUnavailableError

_END_S = 5.0
MOST_BYTES = 1 << 16  # in one piece of a channel
MOST_STDERR_BYTES = 1 << 14
PATIENCE_S = 60.0  # a program that takes or prints nothing for so long is given up


class LinkLostError(BackendUnavailableError):
    """The connection to a host does not answer any more; what runs there goes on."""


class NoAnswerError(LinkLostError):
    """A program on a host neither takes nor prints anything, for longer than it was waited for.

    Args:
        found: What was found.
        expected: What was expected.
        action: What to do next.
    """


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
        """Send all the data to the command's standard input.

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
        """Wait for the next output of the command; it is empty at the end.

        Raises:
            NoAnswerError: The command has printed nothing for so long.
            LinkLostError: The connection is gone.
        """
        ...

    def stderr(self) -> bytes:
        """Return the end of what it has printed on standard error so far."""
        ...

    def exit_code(self, within_s: float = PATIENCE_S) -> int:
        """Wait for the command's end, and return its exit code; it is negative where a signal ended it.

        Raises:
            NoAnswerError: It has not ended by then.
            LinkLostError: The connection is gone.
        """
        ...

    def close(self) -> None:
        """Give the channel up; the command's standard input and output are closed."""
        ...


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
        """Put a piece at the end, and drop the oldest ones beyond the limit."""
        self._pieces.append(piece)
        self._size_bytes += len(piece)
        while self._size_bytes - len(self._pieces[0]) >= self._most_bytes:
            self._size_bytes -= len(self._pieces.popleft())

    def bytes(self) -> bytes:
        """Return the bytes that are kept."""
        return b"".join(self._pieces)


class ProcessChannel:
    """A process with its standard streams.

    Args:
        argv: The program and its arguments.
        name: The place that it works for, in messages.
        lost_code: The exit code by which it says that its own connection is gone; None where it has none.
    """

    def __init__(self, argv: Sequence[str], name: str, lost_code: int | None = None) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
        )  # fmt: skip
        os.set_blocking(_pipe(self._process.stdin).fileno(), False)
        self._name = name
        self._lost_code = lost_code
        self._tail = TailBuffer()
        self._is_closed = False
        self._reader = threading.Thread(target=self._read_stderr, name=f"stderr-{name}", daemon=True)
        self._reader.start()

    def _read_stderr(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while piece := _pipe(self._process.stderr).read(MOST_BYTES):
                self._tail.add(piece)

    def send(self, data: bytes, within_s: float = PATIENCE_S) -> None:
        """Do the same as `Channel.send`."""
        view = memoryview(data)
        stdin = _pipe(self._process.stdin)
        try:
            while view:
                self._wait_for(stdin, select.POLLOUT, within_s)
                view = view[stdin.write(view) or 0 :]
        except BrokenPipeError as error:
            if self._ended(Deadline(within_s)) == self._lost_code:
                raise self._lost() from error
            raise

    def _wait_for(self, stream: IO[bytes], event: int, within_s: float) -> None:
        """Wait until a pipe can be read or written, or has been closed at its other end."""
        poll = select.poll()
        poll.register(stream, event)
        if not poll.poll(1000 * within_s):
            raise no_answer(self._name, within_s)

    def _ended(self, deadline: Deadline) -> int:
        try:
            return self._process.wait(deadline.left_s)
        except subprocess.TimeoutExpired:
            raise no_answer(self._name, deadline.within_s) from None

    def finish(self) -> None:
        """Do the same as `Channel.finish`."""
        _pipe(self._process.stdin).close()

    def receive(self, within_s: float = PATIENCE_S) -> bytes:
        """Do the same as `Channel.receive`."""
        deadline = Deadline(within_s)
        self._wait_for(_pipe(self._process.stdout), select.POLLIN, within_s)
        piece = _pipe(self._process.stdout).read(MOST_BYTES)
        if not piece and self._ended(deadline) == self._lost_code:
            raise self._lost()
        return piece

    def _lost(self) -> LinkLostError:
        last = self.stderr().decode(errors="replace").strip().splitlines()
        return lost(self._name, f" ({last[-1][:200]})" if last else "")

    def stderr(self) -> bytes:
        """Do the same as `Channel.stderr`."""
        if self._process.poll() is not None:
            self._reader.join(1.0)
        return self._tail.bytes()

    def exit_code(self, within_s: float = PATIENCE_S) -> int:
        """Do the same as `Channel.exit_code`."""
        code = self._ended(Deadline(within_s))
        if code == self._lost_code:
            raise self._lost()
        return code

    def close(self) -> None:
        """Do the same as `Channel.close`."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(OSError):
            _pipe(self._process.stdin).close()
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(1.0)
        for stream in (self._process.stdout, self._process.stderr):
            _pipe(stream).close()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
