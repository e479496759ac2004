"""Which process serves a home, and how a client wakes it and gives it secrets.

How a client wakes the manager, and the only way a secret reaches it. No port is opened. One Unix datagram socket in
the home, mode 0600 in a folder of mode 0700. Both sides make sure that the other is the same user: the manager by the
credentials that Linux adds to a datagram, the client by the socket's owner. A datagram is one JSON object, with the
version of its sender. A lost datagram loses nothing: what is to be done is in the store, which the manager also reads
twice a second.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.agent import VERSION, files, system
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.system import unix_sockets
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import ManagerError


@dataclass(frozen=True, slots=True)
class ManagerIdentity:
    """The manager of a home.

    Attributes:
        process: The process.
        host: The machine's name; a home on a shared disk may be served from another one.
        version: Of the package that it runs.
    """

    process: ProcessIdentity
    host: str
    version: str = VERSION

    @classmethod
    def of(cls, pid: int) -> ManagerIdentity:
        """Identify a process of this machine.

        Raises:
            OSError: There is none, or it cannot be looked at.
        """
        return cls(ProcessIdentity.of(pid), os.uname().nodename)

    @classmethod
    def read(cls, path: Path) -> ManagerIdentity | None:
        """Read what `write` wrote; None when there is nothing to read."""
        try:
            found = json.loads(path.read_text())
            process = ProcessIdentity.from_json(found["process"])
            return None if process is None else cls(process, str(found["host"]), str(found.get("version", "")))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, fd: int) -> None:
        """Write it into an open file, in place of what was there."""
        content = {"process": self.process.to_json(), "host": self.host, "version": self.version}
        _write(fd, json.dumps(content))

    def clear(self, fd: int) -> None:
        """Write that it serves no more; what is left is the version that did."""
        _write(fd, json.dumps({"version": self.version}))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def alive(self) -> bool:
        """True when this very process lives on this machine; False also when it cannot be looked at."""
        if self.host != os.uname().nodename:
            return False
        try:
            return self.process.is_alive()
        except OSError:
            return False

    @property
    def is_stopped(self) -> bool:
        """True while it lives and a signal such as SIGSTOP holds it: it keeps its lock, and does nothing."""
        try:
            return self.alive and system.look(self.pid).is_stopped
        except OSError:
            return False


def last_version(path: Path) -> str:
    """Return the version of the manager that serves a home, or did so last; "" where that is not known."""
    try:
        return str(json.loads(path.read_text())["version"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def _write(fd: int, text: str) -> None:
    data = text.encode()
    os.pwrite(fd, data, 0)
    os.ftruncate(fd, len(data))


_LARGEST_MESSAGE_BYTES = 200_000
_SEND_TIMEOUT_S = 1.0
_VERSION = "version"  # the member of a message that says of which version its sender is
_log = logging.getLogger(__name__)


def notify(home: Home, message: JsonObject | None = None) -> bool:
    """Wake the manager of a home.

    Args:
        home: The home.
        message: What it is sent, kept in its memory only: `{"secrets": {experiment id: {NAME: value}}}`, or
            `{"prepare": profile}`, whose backend it connects to.

    Returns:
        False when nobody of this user listens; then a running manager finds the change in the store within a second.

    Raises:
        ManagerError: When the message is too large for one datagram.
    """
    data = json.dumps({**(message or {}), _VERSION: VERSION}).encode()
    if len(data) > _LARGEST_MESSAGE_BYTES:
        raise ManagerError(
            f"The message to the manager has {len(data)} bytes.",
            f"At most {_LARGEST_MESSAGE_BYTES} bytes fit in one message.",
            "Ship large secrets as a file instead.",
        )
    try:
        status = home.wakeup_socket.lstat()
        if status.st_uid != os.geteuid() or not stat.S_ISSOCK(status.st_mode):
            return False
        with (
            unix_sockets.address(home.wakeup_socket) as address,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
        ):
            unix_sockets.make_room(sender, socket.SO_SNDBUF, _LARGEST_MESSAGE_BYTES)
            sender.settimeout(_SEND_TIMEOUT_S)
            sender.sendto(data, address)
    except (OSError, AttributeError):  # a platform without Unix sockets has no AF_UNIX
        return False
    return True


class WakeupSocket:
    """The manager's end. Where Unix sockets cannot be had, `fileno` is None and the store is polled instead.

    Attributes:
        newer_version: That of a client which is newer than this manager; "" while there is none.
    """

    def __init__(self, path: Path) -> None:
        self.newer_version = ""
        self._path = path
        self._socket: socket.socket | None = None
        self._file: tuple[int, int] | None = None

    def open(self) -> None:
        """Begin to listen; a socket that is there already is of a dead manager, since the caller holds the lock."""
        self.close()
        try:
            self._path.unlink(missing_ok=True)
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            unix_sockets.ask_for_credentials(self._socket)
            unix_sockets.make_room(self._socket, socket.SO_RCVBUF, _LARGEST_MESSAGE_BYTES)
            with unix_sockets.address(self._path) as address:
                self._socket.bind(address)
            self._path.chmod(0o600)
            self._file = self._file_at_path()
        except (OSError, AttributeError) as error:
            _log.warning("no socket can be made here (%s): the store is polled instead", error)
            self.close()

    def reopen_if_deleted(self) -> None:
        """Listen again when the socket was deleted or replaced; the messages of before have to be read before."""
        if self._socket is not None and self._file_at_path() != self._file:
            _log.warning("the socket was deleted; it is recreated")
            self.open()

    def close(self) -> None:
        """Stop listening; a socket that another manager has put in its place stays."""
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
        """Return the descriptor to select on."""
        return None if self._socket is None else self._socket.fileno()

    def messages(self) -> list[JsonObject]:
        """Everything received since the last call; an empty object only wakes the manager."""
        return list(self._read())

    def _read(self) -> Iterator[JsonObject]:
        while self._socket is not None:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(
                    _LARGEST_MESSAGE_BYTES, unix_sockets.CREDENTIALS_SPACE_BYTES
                )
                message = files.parse_json(data)
            except BlockingIOError:
                return
            except ValueError:
                _log.warning("a message that is not JSON was ignored")
                continue
            if not unix_sockets.is_sent_by(os.geteuid(), ancillary):
                _log.warning("a message of another user was ignored")
            elif isinstance(message, dict):
                sender = str(message.pop(_VERSION, ""))
                if is_newer(sender, VERSION):
                    self.newer_version = sender
                yield message


def is_newer(version: str, than: str) -> bool:
    """Tell whether a version of this package is newer than another.

    A text that is no version is older than any.
    """
    if version == than:
        return False
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 - versions differ rarely

    try:
        found = Version(version)
        return found > Version(than) if than else True
    except InvalidVersion:
        return False
