"""The streams of a process in a container, as channels."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.server.runtime import ExecProcess

T = TypeVar("T")
STDIN = 0
STDOUT = 1
STDERR = 2
ERROR = 3
CLOSE = 255
_CHUNK = 32 * 1024


def exit_status(code: int) -> Json:
    """Return the Status by which a process's end is told."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    message = f"command terminated with non-zero exit code: exit status {code}"
    details = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
    return {
        "metadata": {}, "status": "Failure", "message": message, "reason": "NonZeroExitCode", "details": details,
    }  # fmt: skip


class ExecStreams:
    """Pipes, or a terminal, between a process and a client.

    Args:
        send: Sends what a channel carries.
        stdin: Whether there is input.
        tty: Whether the process has a terminal.

    Attributes:
        inside: The descriptors of the process.
        outputs: The channels that it writes to.
    """

    def __init__(self, send: Callable[[int, bytes], None], *, stdin: bool, tty: bool) -> None:
        self._send = send
        self._input: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._process: ExecProcess | None = None
        self._abandoned = False
        self._tty = tty
        self._threads = ThreadPoolExecutor(4)  # its own: a process that says nothing holds up no other
        self.outputs = (STDOUT,) if tty else (STDOUT, STDERR)
        if tty:
            outside, inside = pty.openpty()
            self.inside: tuple[int, ...] = (inside, inside, inside)
            self._stdin = os.dup(outside)
            self._readers = {STDOUT: outside}
        else:
            self._open_pipes()
        if not stdin:
            self._input.put_nowait(None)

    def _open_pipes(self) -> None:
        stdin, self._stdin = os.pipe()
        read_out, stdout = os.pipe()
        read_err, stderr = os.pipe()
        self.inside = (stdin, stdout, stderr)
        self._readers = {STDOUT: read_out, STDERR: read_err}

    async def run(self, process: ExecProcess) -> None:
        """Pass on all that a process reads and writes, until it has closed its outputs."""
        self._process = process
        if self._abandoned:
            self.abandon()
        self._close_inside()
        writer = asyncio.create_task(self._feed())
        await asyncio.gather(*(self._pass_on(channel, fd) for channel, fd in self._readers.items()))
        writer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writer

    async def in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        """Return what a call that blocks returns."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    def write(self, data: bytes | None) -> None:
        """Input of the process; None: there is no more."""
        self._input.put_nowait(data)

    def resize(self, width: int, height: int) -> None:
        """Give the terminal its new size."""
        if self._tty and self._stdin >= 0:
            fcntl.ioctl(self._stdin, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def abandon(self) -> None:
        """End the process of a client that has gone."""
        self._abandoned = True
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.kill()

    def close(self) -> None:
        """Close all that is still open."""
        self._close_inside()
        self._close_stdin()
        for fd in self._readers.values():
            os.close(fd)
        self._readers = {}
        self._threads.shutdown(wait=False)

    def _close_inside(self) -> None:
        for fd in set(self.inside):
            os.close(fd)
        self.inside = ()

    def _close_stdin(self) -> None:
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1

    async def _feed(self) -> None:
        try:
            while (data := await self._input.get()) is not None:
                await self.in_thread(_write_all, self._stdin, data)
        except OSError:
            pass  # the process reads no more
        if not self._tty:
            self._close_stdin()

    async def _pass_on(self, channel: int, fd: int) -> None:
        while data := await self.in_thread(_read, fd):
            self._send(channel, data)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK)
    except OSError:  # a terminal whose other side is closed
        return b""


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
