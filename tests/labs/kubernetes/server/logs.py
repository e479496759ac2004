"""Logs of containers, as the kubelet serves them from its files."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from tests.labs.kubernetes.objects.errors import bad_request

_POLL_S = 0.1
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class LogRequest:
    """The options of a request for a log. `since`: only what was written from then on, in the format of the log."""

    follow: bool = False
    timestamps: bool = False
    since: str = ""
    tail_lines: int | None = None
    limit_bytes: int | None = None


def since_time(now_s: float, since_seconds: str, since: str) -> str:
    """Return the least timestamp of the lines asked for.

    Raises:
        ApiError: 400: A value is none.
    """
    if since_seconds:
        if not since_seconds.isdigit() or int(since_seconds) < 1:
            raise bad_request("sinceSeconds must be greater than 0")
        start = datetime.fromtimestamp(now_s, UTC) - timedelta(seconds=int(since_seconds))
        return start.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    if not since:
        return ""
    return normal_timestamp(since)


def normal_timestamp(text: str) -> str:
    """Return a timestamp in UTC with nine digits, so that texts compare as times do."""
    try:
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise bad_request(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse') from None
    if parsed.tzinfo is None:
        raise bad_request(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"')
    fraction = re.search(r"\.(\d+)", text)
    digits = fraction[1] if fraction else ""
    return parsed.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S") + "." + digits[:9].ljust(9, "0") + "Z"


class LogReader:
    """One reading of the log of a container.

    Args:
        path: The file of the log; it is read to its end also when it is renamed.
        request: What is asked for.
        writing: Whether the container may still write.
    """

    def __init__(self, path: Path, request: LogRequest, writing: Callable[[], bool]) -> None:
        self._path = path
        self._request = request
        self._writing = writing
        self._left = request.limit_bytes
        self._rest = b""
        self._begun_line = False

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the text, as it comes; with `follow` until the container ends or its log is rotated."""
        with self._path.open("rb") as file:
            if self._request.tail_lines is not None:
                file.seek(_tail_offset(file, self._request.tail_lines))
            while True:
                last = not self._request.follow or not self._writing() or self._is_rotated(file)
                while records := file.read(_CHUNK):
                    if text := self._limited(self._text(records)):
                        yield text
                    if self._left == 0:
                        return
                if last:
                    return
                await asyncio.sleep(_POLL_S)

    def _is_rotated(self, file: BinaryIO) -> bool:
        try:
            return self._path.stat().st_ino != _inode(file)
        except FileNotFoundError:
            return True

    def _text(self, records: bytes) -> bytes:
        lines = (self._rest + records).split(b"\n")
        self._rest = lines.pop()
        return b"".join(self._line(line) for line in lines)

    def _line(self, record: bytes) -> bytes:
        time, _, tag, text = (*record.split(b" ", 3), b"")[:4]
        if self._request.since and time.decode() < self._request.since:
            return b""
        begins = not self._begun_line
        self._begun_line = tag == b"P"
        end = b"" if tag == b"P" else b"\n"
        if self._request.timestamps and begins:
            return time + b" " + text + end
        return text + end

    def _limited(self, text: bytes) -> bytes:
        if self._left is None:
            return text
        kept = text[: self._left]
        self._left -= len(kept)
        return kept


def _inode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino


def _tail_offset(file: BinaryIO, lines: int) -> int:
    content = file.read()
    starts = [0] + [index + 1 for index, byte in enumerate(content) if byte == 10]
    return len(content) if not lines else starts[max(0, len(starts) - 1 - lines)]
