"""How long the first request of a batch waits for others that can go with it. Pure, but for the clock."""

from __future__ import annotations

import time
from collections.abc import Callable

_GROWTH = 2.0
_CLOSE_S = 2.0  # batches that follow each other this soon would better have been one


class BatchWindow:
    """The window of one kind of request: short for a single one, longer while batches follow each other closely.

    Args:
        least_s: The window after a while without requests.
        most_s: The longest window.
        clock: Seconds that only grow.
    """

    def __init__(self, least_s: float, most_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._least_s = least_s
        self._most_s = most_s
        self._clock = clock
        self._window_s = least_s
        self._ends_s = float("-inf")

    def open(self) -> float:
        """A batch begins now: for how many seconds it takes others in."""
        now_s = self._clock()
        follows_closely = now_s - self._ends_s < _CLOSE_S
        self._window_s = min(self._window_s * _GROWTH, self._most_s) if follows_closely else self._least_s
        self._ends_s = now_s + self._window_s
        return self._window_s
