"""A copy of a warm process that makes the imports, seen by the process that it was forked from.

It tells of each line by line: `begin NAME`, `unsuitable WHY` at its end, or `ready`, when it takes its parent's place.
"""

from __future__ import annotations

import contextlib
import os
import signal

_PART_BYTES = 1 << 16


class ImportProcess:
    """The copy.

    Args:
        pid: Its pid.
        reader: The pipe that it tells through.

    Attributes:
        fd: That pipe.
        name: The import that it is making.
        fault: Why that cannot be made for all.
        is_ready: It has made all, and goes on as the warm process.
    """

    def __init__(self, pid: int, reader: int) -> None:
        self.pid = pid
        self.fd = reader
        self.name = ""
        self.fault = ""
        self.is_ready = False
        self._text = b""
        os.set_blocking(reader, False)

    def has_ended(self) -> bool:
        """Take what it has told; return True when it tells no more."""
        while True:
            try:
                part = os.read(self.fd, _PART_BYTES)
            except BlockingIOError:
                return False
            if not part:
                self.fault = self.fault or "its import ends the process"
                return True
            *lines, self._text = (self._text + part).split(b"\n")
            for line in lines:
                self._take(line.decode(errors="replace"))

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "begin":
            self.name = rest
        elif word == "unsuitable":
            self.fault = rest
        elif word == "ready":
            self.is_ready = True

    def end(self) -> None:
        """End it, unless it is ready."""
        os.close(self.fd)
        if not self.is_ready:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Teller:
    """The other end of the pipe, in the copy.

    Args:
        writer: The pipe.
    """

    def __init__(self, writer: int) -> None:
        self._writer = writer

    def begin(self, name: str) -> None:
        """Tell of an import before it is made."""
        self._tell(f"begin {name}")

    def unsuitable(self, why: str) -> None:
        """Tell why it cannot be made for all."""
        self._tell(f"unsuitable {' '.join(why.split())}")

    def ready(self) -> None:
        """Tell that all are made."""
        self._tell("ready")
        os.close(self._writer)

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # its parent was killed: it takes its place all the same
            os.write(self._writer, f"{line}\n".encode())
