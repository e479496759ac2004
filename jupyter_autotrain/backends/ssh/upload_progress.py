"""What is told of an upload while it goes on: how much, how fast, and how long it takes still."""

from __future__ import annotations

import time
from collections.abc import Callable

from jupyter_autotrain.core.sizes import format_bytes

_PAUSE_S = 0.5  # quick uploads are not told of


class UploadProgress:
    """A `ProgressCallback` that tells in words, twice per second.

    Args:
        host: Where to.
        tell: Takes the rest of a sentence that begins with the trial.
        clock: Gives seconds that never go back.
    """

    def __init__(self, host: str, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._tell = tell
        self._clock = clock
        self._begun: tuple[float, int] | None = None
        self._told_s = clock()

    def __call__(self, sent_bytes: int, total_bytes: int) -> None:
        """Note how much is sent."""
        now_s = self._clock()
        if self._begun is None or sent_bytes < self._begun[1]:  # another folder
            self._begun = now_s, sent_bytes
        if now_s - self._told_s < _PAUSE_S:
            return
        self._told_s = now_s
        begun_s, begun_bytes = self._begun
        rate = (sent_bytes - begun_bytes) / max(now_s - begun_s, _PAUSE_S)
        left = f", {(total_bytes - sent_bytes) / rate:.0f} s left" if rate else ""
        share = sent_bytes / max(total_bytes, 1)
        self._tell(
            f"sends {format_bytes(total_bytes)} to {self._host}: {share:.0%}, {format_bytes(round(rate))}/s{left}"
        )
