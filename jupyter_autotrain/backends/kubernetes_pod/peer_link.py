"""A connection between two pods of a trial: JSON objects, a line each. Runs in the pod, with Python 3.9.

Whoever connects proves first that it knows the trial's token, which is never sent.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import select
import socket
from collections.abc import Iterator
from typing import Any

_WAIT_S = 10.0  # for a peer that does not take or say what it should
_MOST_BYTES = 64 << 20  # of one message: ports of many nodes, a piece of a stream
_PIECE = 1 << 16
_MAPPED = "::ffff:"  # of an IPv4 address, where one socket listens for both families


class PeerLink:
    """One end of a connection.

    Args:
        connected: The socket.
        node: The number of the node at the other end.
    """

    def __init__(self, connected: socket.socket, node: int = 0) -> None:
        connected.settimeout(_WAIT_S)
        self._socket = connected
        self._buffer = b""
        self.node = node
        self.is_closed = False

    @property
    def own_address(self) -> str:
        """The address of this end."""
        address = str(self._socket.getsockname()[0])
        return address[len(_MAPPED) :] if address.startswith(_MAPPED) else address

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; to a peer that is gone nothing is sent."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self.is_closed = True

    def received(self) -> Iterator[dict[str, Any]]:
        """The messages that have come, without waiting; whoever takes only some finds the others the next time."""
        while not self.is_closed and select.select([self._socket], [], [], 0)[0]:
            self._take()
        while b"\n" in self._buffer:
            yield self._next()

    def receive(self) -> dict[str, Any]:
        """The next message.

        Raises:
            OSError: None comes.
        """
        while b"\n" not in self._buffer:
            if self.is_closed:
                raise ConnectionError("the other pod has closed the connection")
            self._take()
        return self._next()

    def _next(self) -> dict[str, Any]:
        line, _, self._buffer = self._buffer.partition(b"\n")
        found = json.loads(line)
        return found if isinstance(found, dict) else {}

    def _take(self) -> None:
        try:
            data = self._socket.recv(_PIECE)
        except TimeoutError:
            raise
        except OSError:
            data = b""
        self._buffer += data
        self.is_closed = not data or len(self._buffer) > _MOST_BYTES

    def close(self) -> None:
        """Close the connection."""
        self.is_closed = True
        self._socket.close()


def _proof(token: str, nonce: str) -> str:
    return hmac.new(token.encode(), nonce.encode(), hashlib.sha256).hexdigest()


def accept(connected: socket.socket, token: str) -> tuple[PeerLink, dict[str, Any]]:
    """Let a pod in that knows the token; gives what it says of itself.

    Raises:
        OSError: It does not, or says nothing.
        ValueError: It says something else.
    """
    link = PeerLink(connected)
    nonce = secrets.token_hex(16)
    link.send({"nonce": nonce})
    about = link.receive()
    if not hmac.compare_digest(str(about.get("proof")), _proof(token, nonce)):
        raise ConnectionError("a pod that is none of the trial has connected")
    link.node = int(about.get("node", 0))
    return link, about


def connect(address: str, port: int, node: int) -> PeerLink:
    """Connect to the first pod of the trial; the next message says who this pod is.

    Raises:
        OSError: It does not answer.
    """
    return PeerLink(socket.create_connection((address, port), timeout=_WAIT_S), node)


def introduce(link: PeerLink, token: str, ports: list[int]) -> None:
    """Prove that this pod is of the trial, and say where its ranks will listen.

    Raises:
        OSError: The first pod does not answer.
    """
    nonce = str(link.receive().get("nonce"))
    about = {"proof": _proof(token, nonce), "node": link.node, "address": link.own_address, "ports": ports}
    link.send(about)
