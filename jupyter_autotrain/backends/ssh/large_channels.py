"""Channels of a connection for what is large: folders that are sent, and files of a trial that are brought.

The program at the other end of the channel for folders stays for the next ones; a file has a channel of its own, at
whose other end is `agent.service.trial_files`.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable
from typing import IO

from jupyter_autotrain.backends.ssh.transport import Transport, start
from jupyter_autotrain.backends.transfer.channels import PATIENCE_S, Channel, LinkLostError
from jupyter_autotrain.backends.transfer.folders import FolderManifest
from jupyter_autotrain.backends.transfer.sending import ProgressCallback, Receiver, StartProgram
from jupyter_autotrain.errors import AutotrainError, BackendError

_RECEIVE_FOLDERS = "serve()"
_BLOCK_BYTES = 1 << 20
_DIGEST_CHARACTERS = 64
_LEAST_RATE = 20e6  # bytes per second that a slow disk there reads
_MOST_SIZE_CHARACTERS = 20
_PROGRAM = (
    "import sys; sys.path.insert(0, {code!a}); from jupyter_autotrain.agent.service import trial_files; "
    "trial_files.stream({directory!a}, {path!a}, {offset})\n"
)


class FolderChannel:
    """A channel that sends folders to a host; thread-safe. Several folders at the same time have a channel each.

    Args:
        start: Starts a program there, and gives the channel to it.
        python: The interpreter there.
        name: The host, for messages.
        on_piece: Called whenever the host has taken some.
    """

    def __init__(self, start: StartProgram, python: str, name: str, on_piece: Callable[[], None]) -> None:
        self._start_program = start
        self._python = python
        self._name = name
        self._on_piece = on_piece
        self._kept: Receiver | None = None
        self._lock = threading.Lock()

    def send(self, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None = None) -> str:
        """Do the same as `Receiver.send`."""
        receiver = self._take()
        if receiver is not None:
            try:
                return self._send(receiver, folder, root, kind, progress)
            except LinkLostError:
                raise
            except AutotrainError:
                pass  # it had ended, as after a minute without a folder
        return self._send(self._start(), folder, root, kind, progress)

    def prepare(self) -> None:
        """Start the program at the other end, unless one waits there: it comes up while the folder is read here."""
        with self._lock:
            is_there = self._kept is not None
        if not is_there:
            self._keep(self._start())

    def close(self) -> None:
        """Give up the channel that is kept; the program at its other end ends."""
        receiver = self._take()
        if receiver is not None:
            receiver.channel.close()

    def _start(self) -> Receiver:
        return Receiver(self._start_program, self._python, self._name, _RECEIVE_FOLDERS)

    def _take(self) -> Receiver | None:
        with self._lock:
            receiver, self._kept = self._kept, None
        return receiver

    def _send(
        self, receiver: Receiver, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None
    ) -> str:
        def note(sent_bytes: int, total_bytes: int) -> None:
            self._on_piece()
            if progress is not None:
                progress(sent_bytes, total_bytes)

        try:
            path = receiver.send(folder, root, kind, note)
        except BaseException:
            receiver.channel.close()
            raise
        self._keep(receiver)
        return path

    def _keep(self, receiver: Receiver) -> None:
        with self._lock:
            spare, self._kept = self._kept, receiver
        if spare is not None:
            spare.channel.close()


class RemoteFile:
    """A file of a trial on a host.

    Args:
        name: The host, for messages.
        code: The folder of our code there.
        directory: The trial directory there.
        path: The file in it.
    """

    def __init__(self, name: str, code: str, directory: str, path: str) -> None:
        self._name = name
        self._code = code
        self._directory = directory
        self._path = path

    def receive(self, transport: Transport, python: str, part: IO[bytes], on_piece: Callable[[], None]) -> None:
        """Complete a part of the file; the bytes in it already are not sent again.

        Args:
            transport: The connection.
            python: The interpreter there.
            part: What is here of the file.
            on_piece: Called whenever some of it has come.

        Raises:
            LinkLostError: The connection is gone; what has arrived stays for the next attempt.
            BackendError: The file cannot be read there, or has changed since the part was begun.
            OSError: The part cannot be written.
        """
        argv = [python, "-I", "-S", "-c", "import sys; exec(sys.stdin.buffer.readline())"]
        channel = start(transport, argv, self._name)
        try:
            is_same = self._append(channel, part, on_piece)
        except EOFError:
            said = channel.stderr().decode(errors="replace").strip().splitlines()
            why = said[-1] if said else "it ended early"
            raise BackendError(f"{self._path} cannot be read on {self._name}: {why}.") from None
        finally:
            channel.close()
        if not is_same:
            part.truncate(0)
            raise BackendError(
                f"{self._path} on {self._name} has changed since its first part came.",
                "A file that stays as it is.",
                "Pull it again: it is brought from its beginning then.",
            )

    def _append(self, channel: Channel, part: IO[bytes], on_piece: Callable[[], None]) -> bool:
        """Take the bytes that come, and tell whether the whole has the digest that comes after them."""
        total = hashlib.sha256()
        while block := part.read(_BLOCK_BYTES):
            total.update(block)
        offset = part.tell()
        program = _PROGRAM.format(code=self._code, directory=self._directory, path=self._path, offset=offset)
        with contextlib.suppress(BrokenPipeError):  # it has ended, and its standard error says why
            channel.send(program.encode())
        stream = _Stream(channel, PATIENCE_S + offset / _LEAST_RATE)  # what is here is read there, and not sent
        left = self._size_bytes(stream.line(_MOST_SIZE_CHARACTERS)) - offset
        while left > 0:
            piece = stream.piece(left)
            part.write(piece)
            total.update(piece)
            left -= len(piece)
            on_piece()
        digest = b""
        while len(digest) < _DIGEST_CHARACTERS:
            digest += stream.piece(_DIGEST_CHARACTERS - len(digest))
        return digest == total.hexdigest().encode()

    def _size_bytes(self, line: bytes) -> int:
        if not line.strip().isdigit():
            raise BackendError(
                f"The program that reads {self._path} on {self._name} printed {line!r}.",
                "A Python that prints nothing by itself.",
                "Name one in the profile: `python: /path/to/python3`.",
            )
        return int(line)


class _Stream:
    """The output of a channel, in pieces of the size asked for; EOFError where it ends before."""

    def __init__(self, channel: Channel, silence_s: float) -> None:
        self._channel = channel
        self._silence_s = silence_s
        self._rest = b""

    def piece(self, most_bytes: int) -> bytes:
        data = self._rest or self._channel.receive(self._silence_s)
        if not data:
            raise EOFError
        self._rest = data[most_bytes:]
        return data[:most_bytes]

    def line(self, most_bytes: int) -> bytes:
        found = b""
        while not found.endswith(b"\n") and len(found) < most_bytes:
            found += self.piece(1)
        return found
