"""The channel of a connection that folders are sent over; the program at its other end stays for the next ones."""

from __future__ import annotations

import threading
from collections.abc import Callable

from jupyter_autotrain.backends.ssh.archive_stream import ProgressCallback
from jupyter_autotrain.backends.ssh.sending import FolderManifest, Receiver
from jupyter_autotrain.backends.ssh.transport import LinkLostError, Transport
from jupyter_autotrain.errors import AutotrainError

_RECEIVE_FOLDERS = "serve()"


class FolderChannel:
    """Sends folders to a host; thread-safe. Several at the same time have a channel each.

    Args:
        transport: The connection.
        python: The interpreter there.
        name: The host, for messages.
        on_piece: Called whenever the host has taken some.
    """

    def __init__(self, transport: Transport, python: str, name: str, on_piece: Callable[[], None]) -> None:
        self._transport = transport
        self._python = python
        self._name = name
        self._on_piece = on_piece
        self._kept: Receiver | None = None
        self._lock = threading.Lock()

    def send(self, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None = None) -> str:
        """As `Receiver.send`."""
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
        return Receiver(self._transport, self._python, self._name, _RECEIVE_FOLDERS)

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
