"""Unix datagram sockets where systems differ: the length of addresses, the sender's credentials, buffers."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_autotrain.agent import system

_LONGEST_ADDRESS_BYTES = 100  # macOS takes 103, Linux 107
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: struct ucred of unix(7)

CREDENTIALS_SPACE_BYTES = socket.CMSG_SPACE(_CREDENTIALS.size)


def ask_for_credentials(receiver: socket.socket) -> None:
    """Have the kernel add the sender to each datagram, where it can."""
    if system.has_linux_interfaces():
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def is_sent_by(user: int, ancillary: Iterable[tuple[int, int, bytes]]) -> bool:
    """Tell whether a user sent a datagram, by the credentials that the kernel adds.

    Where it adds none, the socket's mode (0600, in a folder of mode 0700) alone keeps others out.
    """
    if not system.has_linux_interfaces():
        return True
    return _sender(ancillary) == user


def _sender(ancillary: Iterable[tuple[int, int, bytes]]) -> int | None:
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
            return int(_CREDENTIALS.unpack(data[: _CREDENTIALS.size])[1])
    return None


def make_room(end: socket.socket, option: int, size_bytes: int) -> None:
    """Let a buffer (SO_SNDBUF, SO_RCVBUF) hold a datagram of this size: macOS takes 2 KiB otherwise."""
    if end.getsockopt(socket.SOL_SOCKET, option) < size_bytes:
        end.setsockopt(socket.SOL_SOCKET, option, size_bytes)


@contextmanager
def address(path: Path) -> Iterator[str]:
    """Yield a name for a socket that fits in a socket address: for a long path one through a link to its folder.

    Raises:
        OSError: No link can be made, or the path of temporary files is too long itself.
    """
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS_BYTES:
        yield str(path)
        return
    folder = tempfile.mkdtemp(prefix="at-")  # mode 0700: no other user can change the link
    try:
        os.symlink(path.parent.absolute(), f"{folder}/l")
        yield f"{folder}/l/{path.name}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
