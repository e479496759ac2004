"""The news that the agent of one connection has pushed: states and stream bytes, which wait here for their reader.

It is a copy of what lies on the host. When the connection is lost it is thrown away, and the next one subscribes from
the reader's cursors.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue

_ACKNOWLEDGED_BYTES = 1 << 16  # taken before it is told to the agent
_UNREAD_S = 60.0  # a job that nobody asks for is unsubscribed after this
MOST_BYTES = 4 << 20  # of one stream in one read


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a stream; with a fault it cannot be read, for that reason, and a lasting one will not pass.

    `taken` is the offset up to which the agent has to be told that it was taken; None: nothing to tell.
    """

    data: bytes
    fault: str = ""
    is_lasting: bool = False
    taken: int | None = None


@dataclass(slots=True)
class _Stream:
    """The bytes of a stream from `start` on that are here; `told` is what the agent knows to be taken."""

    start: int
    told: int
    data: bytearray = field(default_factory=bytearray)
    fault: str = ""
    is_lasting: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    def add(self, offset: int, data: bytes) -> bool:
        """Append the new ones of these bytes; return False when some are missing in between."""
        if offset > self.end:
            return False
        self.data += data[self.end - offset :]
        return True

    def read(self, offset: int) -> Piece:
        del self.data[: offset - self.start]  # the reader has these
        self.start = offset
        taken = offset if offset - self.told >= _ACKNOWLEDGED_BYTES else None
        self.told = offset if taken is not None else self.told
        return Piece(bytes(self.data[:MOST_BYTES]), "" if self.data else self.fault, self.is_lasting, taken)


@dataclass(slots=True)
class _Job:
    """The news of one job, with the `sizes` of its streams once it has ended."""

    used_s: float
    status: JsonValue = None
    has_status: bool = False
    streams: dict[str, _Stream] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def holds(self, stream: str, offset: int) -> bool:
        """Tell whether a read from this offset can be answered by what is here, now and later."""
        here = self.streams.get(stream)
        if here is None or not here.start <= offset <= here.end:
            return False
        wanted = min(self.sizes.get(stream, 0), offset + MOST_BYTES)
        return bool(here.fault) or here.end >= wanted


class PushedJobs:
    """The jobs that one connection is subscribed to, by their names on the host; thread-safe."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()

    def expect(self, name: str, offsets: Mapping[str, int]) -> None:
        """Expect that a job is subscribed next, its streams from these offsets on."""
        with self._lock:
            job = self._jobs.setdefault(name, _Job(time.monotonic()))
            for stream, offset in offsets.items():
                job.streams[stream] = _Stream(offset, offset)
                job.sizes.pop(stream, None)

    def take(self, message: JsonObject) -> str:
        """Keep pushed news, and return the job's name, or "" when nobody waits for it."""
        name = str(message["push"])
        with self._lock:
            job = self._jobs.get(name)
            if job is None:
                return ""
            if "status" in message:
                job.status = message["status"]
                job.has_status = True
            pieces = cast("Mapping[str, Sequence[JsonValue]]", message.get("streams", {}))
            for stream, piece in pieces.items():
                _take_piece(job, stream, piece)
            job.sizes.update(cast("Mapping[str, int]", message.get("sizes", {})))
        return name

    def status(self, name: str) -> tuple[bool, JsonValue]:
        """Tell whether a job's status is known, and return the status."""
        with self._lock:
            job = self._jobs.get(name)
            if job is None or not job.has_status:
                return False, None
            job.used_s = time.monotonic()
            return True, job.status

    def read(self, name: str, stream: str, offset: int, *, is_subscribed: bool = False) -> Piece | None:
        """Return the bytes here of a stream from an offset on.

        It is None when the stream has to be subscribed from there, and is not yet.
        """
        with self._lock:
            job = self._jobs.get(name)
            if job is None or not (is_subscribed or job.holds(stream, offset)):
                return None
            job.used_s = time.monotonic()
            here = job.streams.get(stream)
            return here.read(offset) if here is not None and here.start <= offset <= here.end else None

    def forget(self, name: str) -> None:
        """Drop the news of a job that begins again."""
        with self._lock:
            self._jobs.pop(name, None)

    def names(self) -> list[str]:
        """Return the names of all subscribed jobs."""
        with self._lock:
            return list(self._jobs)

    def forget_unread(self) -> list[str]:
        """Drop the jobs that nobody has asked for during the last minute, and return their names."""
        oldest_s = time.monotonic() - _UNREAD_S
        with self._lock:
            unread = [name for name, job in self._jobs.items() if job.used_s < oldest_s]
            for name in unread:
                del self._jobs[name]
        return unread


def _take_piece(job: _Job, stream: str, piece: Sequence[JsonValue]) -> None:
    offset, data, fault, is_lasting = cast("tuple[int, str, str, bool]", piece)
    here = job.streams.get(stream)
    if here is None:
        return
    if not here.add(offset, base64.b64decode(data)):
        del job.streams[stream]  # it is subscribed again by the next read
        return
    here.fault = fault
    here.is_lasting = is_lasting
