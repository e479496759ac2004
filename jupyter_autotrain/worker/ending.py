"""Ending a set of processes that may still grow, with proof of what was ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

_LOOK_AGAIN_S = 0.005


class Receipt:
    """What ending a tree took: pids that ended when asked, pids that were killed, pids that are left."""

    def __init__(self) -> None:
        self.asked: set[int] = set()
        self.killed: set[int] = set()
        self.left: set[int] = set()
        self.elapsed_s = 0.0

    def ask(self, pids: set[int], number: int) -> None:
        """Signal processes: SIGTERM once, SIGKILL as often as they are met."""
        _signal_all(pids - self.asked if number == signal.SIGTERM else pids, number)
        self.asked |= pids
        if number == signal.SIGKILL:
            self.killed |= pids

    def to_json(self) -> dict[str, object]:
        """The receipt as it stands in `status.json`."""
        ended = sorted(self.asked - self.killed - self.left)
        return {
            "ended": ended,
            "killed": sorted(self.killed - self.left),
            "left": sorted(self.left),
            "elapsed_s": round(self.elapsed_s, 4),
        }


def end(
    members: Callable[[], set[int]], grace_s: float, *, seal: Callable[[], object] = bool, patience_s: float = 10.0
) -> Receipt:
    """End all processes of a set that may still grow: SIGTERM, then after `grace_s` SIGKILL until none is left.

    Args:
        members: Says who still lives; called again and again.
        grace_s: How long the processes may take to end themselves.
        seal: Called once before the killing: forbids new processes where that can be done.
        patience_s: How long to go on killing; a process stuck in the kernel cannot be ended by anyone.

    Raises:
        OSError: It cannot be told who is left.
    """
    receipt = Receipt()
    begun = time.monotonic()
    while (living := _ask(members)) != set() and time.monotonic() - begun < grace_s:
        receipt.ask(living or set(), signal.SIGTERM)
        time.sleep(_LOOK_AGAIN_S)
    seal()
    while (living := _ask(members)) != set() and time.monotonic() - begun < grace_s + patience_s:
        receipt.ask(living or set(), signal.SIGKILL)
        time.sleep(_LOOK_AGAIN_S)
    receipt.left = members()
    receipt.elapsed_s = time.monotonic() - begun
    return receipt


def _ask(members: Callable[[], set[int]]) -> set[int] | None:
    """Who still lives; None when it cannot be told just now."""
    try:
        return members()
    except OSError:
        return None


def _signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
            if number == signal.SIGTERM:
                os.kill(pid, signal.SIGCONT)  # a stopped process hears nothing
        except (ProcessLookupError, PermissionError):
            continue
