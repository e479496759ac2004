"""The identity of a process, where a pid alone is not enough because pids are used again.

Supervisors, managers and clients all compare processes by this one type. It is imported by every supervisor, so it
uses only the cheapest parts of the standard library.
"""

from __future__ import annotations

import errno
import os

from jupyter_autotrain.agent import system


class ProcessIdentity:
    """One process of one start of one machine.

    Args:
        pid: Its process id.
        created_s: When it began, in seconds since the machine's boot: no change of the clock moves it.
        boot_id: The boot of the machine.
    """

    __slots__ = ("boot_id", "created_s", "pid")

    def __init__(self, pid: int, created_s: float, boot_id: str) -> None:
        self.pid = pid
        self.created_s = created_s
        self.boot_id = boot_id

    def __repr__(self) -> str:
        return f"ProcessIdentity({self.pid}, {self.created_s}, {self.boot_id!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProcessIdentity) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.pid, self.created_s, self.boot_id))

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        """Identify a process; one that has ended and is not reaped yet counts.

        Raises:
            OSError: There is no such process (`is_gone` is true of the error), or it cannot be looked at.
        """
        return cls(pid, system.look(pid).created_s, system.boot_id())

    @classmethod
    def from_json(cls, value: object) -> ProcessIdentity | None:
        """Read the value that `to_json` gave; return None when it is anything else."""
        if not isinstance(value, (list, tuple)) or len(value) != 3:
            return None
        pid, created_s, boot = value
        if not isinstance(pid, int) or not isinstance(created_s, (int, float)) or not isinstance(boot, str):
            return None
        return cls(pid, created_s, boot)

    def to_json(self) -> list[int | float | str]:
        """Return `[pid, created_s, boot_id]`."""
        return [self.pid, self.created_s, self.boot_id]

    def is_alive(self) -> bool:
        """Tell whether exactly this process runs; a zombie does not.

        Raises:
            OSError: It cannot be looked at, which proves nothing.
        """
        if self.boot_id != system.boot_id():
            return False
        try:
            found = system.look(self.pid)
        except OSError as error:
            if is_gone(error):
                return False
            raise
        return abs(found.created_s - self.created_s) <= system.START_TOLERANCE_S and not found.is_zombie


def is_gone(error: OSError) -> bool:
    """Tell whether an error of looking at a process proves that it has ended."""
    return error.errno in {errno.ENOENT, errno.ESRCH}


def has_threads() -> bool:
    """Tell whether this process has another thread, of Python or not."""
    return len(os.listdir("/proc/self/task")) > 1


def open_files() -> dict[str, str]:
    """Return the open files by their descriptors."""
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:  # `contextlib` is slow to import
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:  # that of the listing itself
            continue
    return found
