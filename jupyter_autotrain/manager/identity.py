"""Which process serves a home, as its lock file names it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.core import system
from jupyter_autotrain.core.process_identity import ProcessIdentity
from jupyter_autotrain.core.version import VERSION


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
    """The version of the manager that serves a home, or did so last; "" where that is not known."""
    try:
        return str(json.loads(path.read_text())["version"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def _write(fd: int, text: str) -> None:
    data = text.encode()
    os.pwrite(fd, data, 0)
    os.ftruncate(fd, len(data))
