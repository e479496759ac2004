"""The functions that every Unix performs alike, or nearly."""

from __future__ import annotations

import os
import sys


class ProcessInfo:
    """One look at a process.

    Args:
        parent: The pid of its parent.
        created_s: When it began, in seconds since the machine's boot.
        is_zombie: It has ended and is not reaped yet.
        is_stopped: A signal such as SIGSTOP holds it, until SIGCONT.
    """

    __slots__ = ("created_s", "is_stopped", "is_zombie", "parent")

    def __init__(self, parent: int, created_s: float, is_zombie: bool, is_stopped: bool = False) -> None:
        self.parent = parent
        self.created_s = created_s
        self.is_zombie = is_zombie
        self.is_stopped = is_stopped


def exists(pid: int) -> bool:
    """Tell whether some process has this pid, a zombie too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def peak_resident_bytes(ru_maxrss: int) -> int:
    """Return the most memory that a reaped process held: getrusage(2) counts bytes on macOS, else KiB."""
    return ru_maxrss if sys.platform == "darwin" else ru_maxrss * 1024
