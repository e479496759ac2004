"""A clock that a test moves."""

from __future__ import annotations


class FakeClock:
    """Call it for the time; `advance` moves it, backwards too.

    Args:
        now_s: Where it begins.
    """

    def __init__(self, now_s: float = 1_000_000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now_s

    def advance(self, by_s: float) -> None:
        """Move the clock."""
        self.now_s += by_s
