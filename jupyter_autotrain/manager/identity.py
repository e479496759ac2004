"""Which process is the manager of a home: never a pid alone, since pids are used again."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Identity:
    """One process, for all time.

    Attributes:
        pid: Its process id.
        created: When it began, in the system's own unit; only ever compared for equality.
        boot: The boot of the machine it began in.
        host: The machine's name; a home on a shared disk may be served from another one.
    """

    pid: int
    created: str
    boot: str
    host: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """Identify a living process; None when there is none."""
        created = _created(pid)
        return None if created is None else cls(pid, created, _boot(), platform.node())

    @classmethod
    def read(cls, path: Path) -> Identity | None:
        """Read what `write` wrote; None when there is nothing to read."""
        try:
            return cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, fd: int) -> None:
        """Write it into an open file, in place of what was there."""
        data = json.dumps(asdict(self)).encode()
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))

    @property
    def alive(self) -> bool:
        """True when this very process still lives, on this machine."""
        return Identity.of(self.pid) == self


def _created(pid: int) -> str | None:
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        # Field 3 is the state and field 22 the start in ticks since boot, which no clock change moves.
        return None if fields[0] in "ZX" else fields[19]
    import psutil  # noqa: PLC0415 - only where there is no /proc

    try:
        return str(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        import psutil  # noqa: PLC0415 - only where there is no /proc

        return str(psutil.boot_time())
