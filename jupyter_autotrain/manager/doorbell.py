"""The doorbell: how a client wakes the manager, and the only way a secret reaches it. No port is opened.

One Unix datagram socket in the home, mode 0600 in a folder of mode 0700. Both sides make sure that the other is the
same user: the manager by the credentials that the kernel adds to a datagram, the client by the socket's owner. A
datagram is one JSON object. A lost ring loses nothing: what is to be done stands in the store, which the manager also
looks at twice a second.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jupyter_autotrain.core import files
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import ManagerError

_LONGEST_PATH = 100
_LARGEST_MESSAGE_BYTES = 200_000
_SEND_TIMEOUT_S = 1.0
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: struct ucred of unix(7)
_log = logging.getLogger(__name__)


def ring(home: Home, message: JsonObject | None = None) -> bool:
    """Wake the manager of a home.

    Args:
        home: The home.
        message: What to tell it, kept in its memory only: `{"secrets": {experiment id: {NAME: value}}}`.

    Returns:
        False when nobody of this user listens; then a manager that lives finds the news in the store within a second.

    Raises:
        ManagerError: When the message is too large for one datagram.
    """
    data = json.dumps(message or {}).encode()
    if len(data) > _LARGEST_MESSAGE_BYTES:
        raise ManagerError(
            f"The message to the manager has {len(data)} bytes.",
            f"At most {_LARGEST_MESSAGE_BYTES} bytes can be told at once.",
            "Ship large secrets as a file instead.",
        )
    try:
        status = home.doorbell.lstat()
        if status.st_uid != os.geteuid() or not stat.S_ISSOCK(status.st_mode):
            return False
        with _address(home.doorbell) as address, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_SEND_TIMEOUT_S)
            sender.sendto(data, address)
    except (OSError, AttributeError):  # a platform without Unix sockets has no AF_UNIX
        return False
    return True


class Doorbell:
    """The manager's end. Where Unix sockets cannot be had, `fileno` is None and the store is polled instead."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._file: tuple[int, int] | None = None

    def hang(self) -> None:
        """Begin to listen; an old socket in the way is of a dead manager, since the caller holds the lock."""
        self.take_down()
        try:
            self._path.unlink(missing_ok=True)
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # the kernel says who sends
            with _address(self._path) as address:
                self._socket.bind(address)
            self._path.chmod(0o600)
            self._file = self._file_at_path()
        except (OSError, AttributeError) as error:
            _log.warning("no doorbell here (%s): the store is polled instead", error)
            self.take_down()

    def mend(self) -> None:
        """Listen again where somebody deleted or replaced the socket; what was told before has to be read before."""
        if self._socket is not None and self._file_at_path() != self._file:
            _log.warning("the doorbell was deleted; it is back")
            self.hang()

    def take_down(self) -> None:
        """Listen no more; a socket that another manager has put in its place stays."""
        if self._socket is None:
            return
        self._socket.close()
        self._socket = None
        if self._file_at_path() == self._file:
            with suppress(OSError):
                self._path.unlink()

    def _file_at_path(self) -> tuple[int, int] | None:
        try:
            status = self._path.lstat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def fileno(self) -> int | None:
        """What to select on."""
        return None if self._socket is None else self._socket.fileno()

    def messages(self) -> list[JsonObject]:
        """Everything told since the last call; an empty object is a mere ring."""
        return list(self._read())

    def _read(self) -> Iterator[JsonObject]:
        while self._socket is not None:
            try:
                data, told, _, _ = self._socket.recvmsg(_LARGEST_MESSAGE_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size))
                message = files.parse_json(data)
            except BlockingIOError:
                return
            except ValueError:
                _log.warning("the doorbell was rung with something that is no JSON")
                continue
            if _sender(told) != os.geteuid():
                _log.warning("the doorbell was rung by user %s: not heard", _sender(told))
            elif isinstance(message, dict):
                yield message


def _sender(told: Iterable[tuple[int, int, bytes]]) -> int | None:
    """The user who sent a datagram, as the kernel tells it; None when it does not."""
    for level, kind, data in told:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
            return int(_CREDENTIALS.unpack(data[: _CREDENTIALS.size])[1])
    return None


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """A name for the socket that fits in a socket address: long paths go through the open folder."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
