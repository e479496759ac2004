"""Connections over which an answer comes for hours, and nothing is ever sent."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import aiohttp

# Linux's names; others have some of them. A connection whose other side is gone is found dead after 90 s.
_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}


def prepare(answer: aiohttp.ClientResponse) -> None:
    """Have the connection of an answer cost little, and noticed when it is dead; as far as that can be had."""
    transport = answer.connection.transport if answer.connection is not None else None
    if transport is None:
        return
    with contextlib.suppress(OSError):  # the other side may have closed it, and the answer is here all the same
        _keep_alive(transport.get_extra_info("socket"))
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:  # the ticket that a server sends has OpenSSL hold 16 KiB until something is written
            tls.write(b"")


def _keep_alive(own: socket.socket | None) -> None:
    """Have the system ask the other side whether it is still there."""
    if own is None:
        return
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            own.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
