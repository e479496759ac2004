"""The stream that pickles are written to: every byte is counted, nothing is kept beyond the limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from pickle import PickleBuffer

_PAUSE_S = 0.1


class LimitError(Exception):
    """An excess of bytes over those that may travel.

    Args:
        size_bytes: How many bytes there are, as far as that is known.
    """

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"more than {size_bytes} bytes")
        self.size_bytes = size_bytes


class ByteBudget:
    """The bytes of all pickles of one capture.

    Args:
        limit_bytes: How many bytes may travel.
        progress: Called with the bytes written so far, at most ten times a second.
    """

    def __init__(self, limit_bytes: int, progress: Callable[[int], object] | None = None) -> None:
        self.limit_bytes = limit_bytes
        self._progress = progress
        self._written_bytes = 0
        self._told_s = time.monotonic()

    def wrote(self, size_bytes: int) -> None:
        """Count bytes and report the progress; exceptions of the callback are not caught."""
        self._written_bytes += size_bytes
        if self._progress is not None and time.monotonic() - self._told_s >= _PAUSE_S:
            self._progress(self._written_bytes)
            self._told_s = time.monotonic()


class PickleStream:
    """A pickle that is being written.

    Args:
        budget: What it is counted against.
        counts_only: Count, but keep no byte; the limit is then that of this pickle alone.
    """

    def __init__(self, budget: ByteBudget, *, counts_only: bool = False) -> None:
        self._budget = budget
        self._counts_only = counts_only
        self._chunks: list[bytes] = []
        self.size_bytes = 0

    def write(self, data: bytes | PickleBuffer) -> int:
        """Take some bytes; those of a buffer are copied.

        Raises:
            LimitError: They are more than may travel; nothing of them is kept.
        """
        size_bytes = memoryview(data).nbytes
        self.expect(size_bytes)
        self.size_bytes += size_bytes
        if not self._counts_only:
            self._chunks.append(bytes(data))
        self._budget.wrote(size_bytes)
        return size_bytes

    def expect(self, size_bytes: int) -> None:
        """Make sure that so many more bytes may travel, before they are copied.

        Raises:
            LimitError: They may not.
        """
        if self.size_bytes + size_bytes > self._budget.limit_bytes:
            raise LimitError(self.size_bytes + size_bytes)

    @property
    def count(self) -> int:
        """The number of pieces that were written."""
        return len(self._chunks)

    def chunks_since(self, count: int) -> tuple[bytes, ...]:
        """Return the pieces that were written after the first ones."""
        return tuple(self._chunks[count:])
