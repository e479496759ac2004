"""A container's log file in the kubelet's format, with rotation.

Each line is `2026-01-01T00:00:00.000000000Z stdout F text`; P instead of F: the text goes on in the next record of the
stream. Source: the Container Runtime Interface's log format.
"""

from __future__ import annotations

import os
import time

_LONGEST_RECORD = 16384  # as containerd cuts long lines


class LogFile:
    """The log of one run of a container.

    Args:
        path: Of the current file; rotated ones lie beside it, with the time in their names.
        limit_bytes: It is rotated when it is larger.
        kept: How many files there are at most, the current one included.
    """

    def __init__(self, path: str, limit_bytes: int, kept: int) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._kept = kept
        self._rotated: list[str] = []
        self._rest: dict[str, bytes] = {"stdout": b"", "stderr": b""}
        self._open()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._file).st_size

    def write(self, stream: str, data: bytes) -> None:
        """Add what came from a stream; an unfinished line waits for its end."""
        *lines, rest = (self._rest[stream] + data).split(b"\n")
        records = [self._record(stream, line, b"F") for line in lines]
        while len(rest) >= _LONGEST_RECORD:
            records.append(self._record(stream, rest[:_LONGEST_RECORD], b"P"))
            rest = rest[_LONGEST_RECORD:]
        self._rest[stream] = rest
        self._append(records)

    def _record(self, stream: str, text: bytes, tag: bytes) -> bytes:
        seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds:09d}Z"
        head = b" ".join([stamp.encode(), stream.encode()])
        records = []
        while len(text) > _LONGEST_RECORD:
            records.append(b"%s P %s\n" % (head, text[:_LONGEST_RECORD]))
            text = text[_LONGEST_RECORD:]
        records.append(b"%s %s %s\n" % (head, tag, text))
        return b"".join(records)

    def _append(self, records: list[bytes]) -> None:
        for record in records:
            if self._size and self._size + len(record) > self._limit_bytes:
                self._rotate()
            os.write(self._file, record)
            self._size += len(record)

    def _rotate(self) -> None:
        os.close(self._file)
        away = f"{self._path}.{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{len(self._rotated):06d}"
        os.rename(self._path, away)
        self._rotated.append(away)
        for old in self._rotated[: -(self._kept - 1)]:
            if os.path.exists(old):
                os.unlink(old)
        self._open()

    def close(self) -> None:
        """Write unfinished lines, and close the file."""
        for stream, rest in self._rest.items():
            if rest:
                self._append([self._record(stream, rest, b"P")])
        os.close(self._file)
