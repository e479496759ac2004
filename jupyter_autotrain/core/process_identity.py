"""Which process is meant, where a pid alone is not enough because pids are used again.

Supervisors, managers and clients all compare processes by this one type. It is imported by every supervisor, so it
uses only the cheapest parts of the standard library. Where there is no `/proc` (macOS), psutil looks instead.
"""

from __future__ import annotations

import errno
import os

_PROC = "/proc"


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
        return cls(pid, _look(pid)[0], boot_id())

    @classmethod
    def from_json(cls, value: object) -> ProcessIdentity | None:
        """Read what `to_json` gave; None when the value is anything else."""
        if not isinstance(value, (list, tuple)) or len(value) != 3:
            return None
        pid, created_s, boot = value
        if not isinstance(pid, int) or not isinstance(created_s, (int, float)) or not isinstance(boot, str):
            return None
        return cls(pid, created_s, boot)

    def to_json(self) -> list[int | float | str]:
        """`[pid, created_s, boot_id]`."""
        return [self.pid, self.created_s, self.boot_id]

    def is_alive(self) -> bool:
        """True while exactly this process runs; a zombie does not.

        Raises:
            OSError: It cannot be looked at, which proves nothing.
        """
        if self.boot_id != boot_id():
            return False
        try:
            created_s, has_ended = _look(self.pid)
        except OSError as error:
            if is_gone(error):
                return False
            raise
        return created_s == self.created_s and not has_ended


def is_gone(error: OSError) -> bool:
    """True when an error of looking at a process proves that it has ended."""
    return error.errno in {errno.ENOENT, errno.ESRCH}


def boot_id() -> str:
    """The name of this boot of this machine.

    Raises:
        OSError: It cannot be read.
    """
    if not _has_proc():
        import psutil  # noqa: PLC0415 - only where there is no /proc

        return str(psutil.boot_time())
    with open(f"{_PROC}/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def stat_fields(pid: int) -> list[str]:
    """The fields of `/proc/PID/stat` after the name: state, parent, ..., start time (proc(5)).

    Raises:
        OSError: There is no such process (`is_gone` is true of the error), or it cannot be looked at.
    """
    with open(f"{_PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    if not fields:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    return fields


def is_zombie(fields: list[str]) -> bool:
    """True when the fields are those of a process that has ended and is not reaped yet."""
    return fields[0] in "ZX"


def _has_proc() -> bool:
    return os.path.exists(f"{_PROC}/self/stat")


def _look(pid: int) -> tuple[float, bool]:
    """When a process began, and whether it is a zombie."""
    if not _has_proc():
        return _look_with_psutil(pid)
    fields = stat_fields(pid)
    return int(fields[19]) / os.sysconf("SC_CLK_TCK"), is_zombie(fields)


def _look_with_psutil(pid: int) -> tuple[float, bool]:
    import psutil  # noqa: PLC0415 - only where there is no /proc

    try:
        process = psutil.Process(pid)
        return process.create_time() - psutil.boot_time(), process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH)) from None
