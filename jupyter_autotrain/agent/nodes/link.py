"""A link between the supervisors of two nodes: JSON objects over TCP, a line each, of which nothing ever waits.

Each side begins with a line of random bytes. From both and the trial's token, which is never sent, both make one key,
and each later line begins with its code by that key, its direction and its number. So a side that does not know the
token, or a line that somebody else has put between, closes the link.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import select
import socket
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]
_MOST_BYTES = 64 << 20  # of one message: endpoints of many nodes, many reports
_MOST_OF_A_STRANGER = 1 << 16  # before its first message has proved that it knows the token
_PIECE = 1 << 16
_MOST_PIECES = 64  # in one turn: much that comes must not keep a supervisor from its other duties
_DRAIN_S = 5.0  # for a node that does not take the last messages
_MAPPED = "::ffff:"  # of an IPv4 address, where one socket listens for both families
# A node that is silent for as long is lost, also where nothing tells of its end: a cut that is mended earlier is none.
_SILENT_S = 300
_PROBE_S = 30


class NodeLink:
    """One end of a link.

    Args:
        connected: The socket.
        token: The secret that the supervisors of the trial alone know.
        is_first: Whether this is node 0.

    Attributes:
        node: The number of the node at the other end.
        is_closed: Whether it has ended, and all that had come is read.
    """

    def __init__(self, connected: socket.socket, token: str, *, is_first: bool) -> None:
        connected.setblocking(False)
        _watch_for_silence(connected)
        self.node = 0
        self.is_closed = False
        self._is_broken = False  # it takes nothing any more; what has come before can still be read
        self._socket = connected
        self._token = token
        self._is_first = is_first
        self._own = os.urandom(16).hex()
        self._key = b""
        self._received = b""
        self._lines = deque[bytes]()  # that are received, and not opened
        self._queued: list[bytes] = []  # until the key is known
        self._outgoing = bytearray(self._own.encode() + b"\n")
        self._count = {True: 0, False: 0}  # messages so far, by whether node 0 has sent them
        self.flush()

    @property
    def fd(self) -> int:
        """The descriptor that is ready when something has come."""
        return self._socket.fileno()

    @property
    def own_address(self) -> str:
        """The address of this end."""
        address = str(self._socket.getsockname()[0])
        return address[len(_MAPPED) :] if address.startswith(_MAPPED) else address

    def send(self, message: Message) -> None:
        """Send a message now, as far as the other node takes it, and the rest later; to one that is gone nothing."""
        self._queued.append(json.dumps(message).encode())
        self.flush()

    def flush(self) -> None:
        """Send on what has not been taken yet."""
        for body in self._queued if self._key else ():
            self._outgoing += self._code(body, is_of_first=self._is_first) + body + b"\n"
        if self._key:
            self._queued.clear()
        try:
            while self._outgoing and not self._is_broken:
                del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            return
        except OSError:
            self._is_broken = True

    def received(self) -> Iterator[Message]:
        """Yield the messages that have come, without waiting. A caller that takes only some finds the others later."""
        for _ in range(_MOST_PIECES):
            if self.is_closed or not select.select([self._socket], [], [], 0)[0]:
                break
            self._take()
        *lines, self._received = self._received.split(b"\n")
        self._lines.extend(lines)
        while self._lines:
            line = self._lines.popleft()
            if not self._key:
                self._make_key(line)
            elif (message := self._opened(line)) is not None:
                yield message

    def _take(self) -> None:
        try:
            data = self._socket.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._received += data
        most = _MOST_BYTES if self._count[not self._is_first] else _MOST_OF_A_STRANGER
        self.is_closed = not data or len(self._received) > most

    def _make_key(self, other: bytes) -> None:
        first, second = (self._own.encode(), other) if self._is_first else (other, self._own.encode())
        self._key = hmac.new(self._token.encode(), first + b"\n" + second, hashlib.sha256).digest()
        self.flush()

    def _code(self, body: bytes, *, is_of_first: bool) -> bytes:
        """Return the code of the next message in a direction."""
        self._count[is_of_first] += 1
        said = f"{is_of_first} {self._count[is_of_first]} ".encode() + body
        return hmac.new(self._key, said, hashlib.sha256).hexdigest().encode() + b" "

    def _opened(self, line: bytes) -> Message | None:
        """Return the message of a line; a line whose code is wrong closes the link, and so do all after it."""
        code, _, body = line.partition(b" ")
        if hmac.compare_digest(code + b" ", self._code(body, is_of_first=not self._is_first)):
            found = json.loads(body)
            return found if isinstance(found, dict) else {}
        self.is_closed = True
        self._lines.clear()
        return None

    def drain(self) -> None:
        """Wait a while until all is sent."""
        until_s = time.monotonic() + _DRAIN_S
        while self._outgoing and not self._is_broken and time.monotonic() < until_s:
            select.select([], [self._socket], [], until_s - time.monotonic())
            self.flush()

    def close(self) -> None:
        """Close it at once."""
        self.is_closed = True
        self._socket.close()


def _watch_for_silence(connected: socket.socket) -> None:
    """Have the system ask whether the other node is still there, and close the link where nothing comes for long."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": _PROBE_S, "TCP_KEEPINTVL": _PROBE_S, "TCP_KEEPCNT": _SILENT_S // _PROBE_S,
        "TCP_USER_TIMEOUT": _SILENT_S * 1000,
    }  # fmt: skip
    for name, value in wanted.items():
        with contextlib.suppress(AttributeError, OSError):  # not every system has each
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
