"""Calls of Linux that Python 3.11 has no function for."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_RDONLY = 0x1
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

_LIBC = ctypes.CDLL(None, use_errno=True)


def _check(result: int, about: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), about)


def unshare(kinds: int) -> None:
    """Give the calling process new namespaces; of process ids only its next children are in the new one."""
    _check(_LIBC.unshare(kinds), "unshare")


def enter(namespace: int, kind: int) -> None:
    """Put the calling process, or for process ids its next children, into a namespace, given as a descriptor."""
    _check(_LIBC.setns(namespace, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Put a file system at a place, or change one that is there."""
    found = _LIBC.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None
    )
    _check(found, target)


def bind(source: str, target: str, *, read_only: bool = False) -> None:
    """Show a file or folder, with what is mounted in it, at another place."""
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:
        mount("", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)


def set_hostname(name: str) -> None:
    """Set the hostname of the calling process's namespace."""
    encoded = name.encode()
    _check(_LIBC.sethostname(encoded, len(encoded)), name)
