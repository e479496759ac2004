"""The log of a job that runs trials one after another, where these have none of their own.

A trial begins with its mark. What was read is looked through for marks once: the first read of a trial goes on where
the last one ended, and no read goes further than the mark of the next trial.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Final

from jupyter_autotrain.agent.pods import frames, places

ReadPart = Callable[[int, int | None], bytes]
"""Gives the bytes of a log from an offset to before another one, or to its present end for None."""

_OVERLAP_BYTES: Final = 16 << 10  # more than the longest line of a frame
_MARK: Final = re.compile(rf'^{frames.MARK}\["{places.JOB}", 0, "([^"]+)"\]\n'.encode(), re.MULTILINE)


class SharedLog:
    """The log of a job, of one trial or of several; safe for several threads.

    Args:
        read_part: Reads it.
    """

    def __init__(self, read_part: ReadPart) -> None:
        self._read_part = read_part
        self._lock = threading.Lock()
        self._begins = {"": 0}  # by trial
        self._ends: dict[str, int] = {}  # by trial: how far it was read
        self._looked_through = 0

    def read(self, trial: str, *, is_whole: bool) -> str:
        """Return the part of a trial: all of it, or what is new and some before that.

        Args:
            trial: Its name; "" where the job has one trial alone.
            is_whole: All of it.
        """
        with self._lock:
            data = self._of(trial, is_whole=is_whole)
        return _MARK.sub(b"", data).decode(errors="replace")

    def _of(self, trial: str, *, is_whole: bool) -> bytes:
        begin = self._begins.get(trial, self._looked_through)
        if not is_whole:
            begin = max(begin, self._ends.get(trial, 0) - _OVERLAP_BYTES)
        data = self._read_part(begin, self._end(trial))
        self._look_through(begin, data)
        if trial not in self._begins:  # it has written nothing yet
            return b""
        first = max(begin, self._begins[trial])
        data = data[first - begin :]
        end = self._end(trial)
        if end is not None:
            data = data[: end - first]
        self._ends[trial] = first + len(data)
        return data

    def _end(self, trial: str) -> int | None:
        """Return where the next trial begins; None where none has."""
        begin = self._begins.get(trial)
        if not trial or begin is None:
            return None
        return min((other for other in self._begins.values() if other > begin), default=None)

    def _look_through(self, begin: int, data: bytes) -> None:
        for mark in _MARK.finditer(data):
            self._begins.setdefault(mark[1].decode(), begin + mark.start())
        self._looked_through = max(self._looked_through, begin + data.rfind(b"\n") + 1)
