"""A clock that no one can set: seconds since the machine was started, and which start that was.

The wall clock jumps when it is set; how long something took is read from this one (CLOCK_BOOTTIME, on macOS
CLOCK_MONOTONIC, see clock_gettime(2): it also runs while the machine sleeps).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

from jupyter_autotrain.agent import system


@dataclass(frozen=True, slots=True)
class BootTime:
    """An instant, as seconds since one start of one machine."""

    boot: str
    at_s: float

    @classmethod
    def now(cls) -> BootTime:
        """Return this instant."""
        return cls(_boot(), time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)))

    def since(self, earlier: BootTime | None) -> float | None:
        """Return the seconds from an earlier instant to this one; None after a reboot in between."""
        if earlier is None or earlier.boot != self.boot:
            return None
        return self.at_s - earlier.at_s


@cache
def _boot() -> str:
    try:
        return system.boot_id()
    except OSError:
        # Without a name for it, every process takes itself for a start of its own.
        return f"unknown-{time.time_ns()}"
