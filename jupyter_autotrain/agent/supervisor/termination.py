"""The end of a set of processes that may still grow, and the record of which of them took what."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

_POLL_S = 0.005


class Termination:
    """The effort that ending a tree of processes took.

    Attributes:
        signalled: The processes that were sent a signal.
        killed: Those that were sent SIGKILL.
        left: Those that still live.
        elapsed_s: How long it took.
    """

    def __init__(self) -> None:
        self.signalled: set[int] = set()
        self.killed: set[int] = set()
        self.left: set[int] = set()
        self.elapsed_s = 0.0

    def send(self, pids: set[int], number: int) -> None:
        """Signal processes: SIGTERM once, SIGKILL each time they are found."""
        _signal_all(pids - self.signalled if number == signal.SIGTERM else pids, number)
        self.signalled |= pids
        if number == signal.SIGKILL:
            self.killed |= pids

    def to_json(self) -> dict[str, object]:
        """Return the `receipt` of a status file; see `agent.wire`."""
        ended = sorted(self.signalled - self.killed - self.left)
        return {
            "ended": ended,
            "killed": sorted(self.killed - self.left),
            "left": sorted(self.left),
            "elapsed_s": round(self.elapsed_s, 4),
        }


def terminate(
    members: Callable[[], set[int]],
    grace_s: float,
    *,
    before_kill: Callable[[], object] = bool,
    kill_timeout_s: float = 10.0,
) -> Termination:
    """End all processes of a set that may still grow: SIGTERM, then after `grace_s` SIGKILL until none is left.

    Args:
        members: Lists who still lives; called again and again.
        grace_s: How long the processes may take to end themselves.
        before_kill: Called once before the killing: forbids new processes where that can be done.
        kill_timeout_s: How long to go on killing; a process blocked in the kernel cannot be ended by anyone.

    Raises:
        OSError: Who is left cannot be found out.
    """
    termination = Termination()
    start_s = time.monotonic()
    while (living := _living(members)) != set() and time.monotonic() - start_s < grace_s:
        termination.send(living or set(), signal.SIGTERM)
        time.sleep(_POLL_S)
    if living != set():
        before_kill()
        termination.send(living or set(), signal.SIGKILL)  # also those that end because they can start no processes
    while (living := _living(members)) != set() and time.monotonic() - start_s < grace_s + kill_timeout_s:
        termination.send(living or set(), signal.SIGKILL)
        time.sleep(_POLL_S)
    termination.left = members()
    termination.elapsed_s = time.monotonic() - start_s
    return termination


def _living(members: Callable[[], set[int]]) -> set[int] | None:
    """Return the processes that still live; None when that cannot be found out just now."""
    try:
        return members()
    except OSError:
        return None


def _signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
            if number == signal.SIGTERM:
                os.kill(pid, signal.SIGCONT)  # a stopped process handles no SIGTERM
        except (ProcessLookupError, PermissionError):
            continue
