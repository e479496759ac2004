"""The decisions about the pilots of a pool, the same wherever they run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

_MOST_FAILURES = 3  # in a row; one may be bad luck, as with a node that is out of order
_MARGIN_S = 30.0  # for the beginning and the end of a trial, beside its `timeout`
_SHARE_WITHOUT_TIMEOUT = 0.5  # of a pilot's time that is left when it takes a trial without a `timeout`
_End = TypeVar("_End")


def missing_pilots(waiting: int, ready: int, living: int, most: int) -> int:
    """Return how many pilots to start.

    Args:
        waiting: How many trials wait.
        ready: How many pilots live and run no trial, those that have not started yet included.
        living: How many pilots live.
        most: How many pilots there may be.
    """
    return max(0, min(most - living, waiting - ready))


def fatal_end(failures: Sequence[_End], broken: Sequence[_End] = ()) -> _End | None:
    """Return the end of a pilot with which the trials that wait fail, too; None where another pilot may run them.

    Args:
        failures: The ends of those that have failed, without a success between them.
        broken: The ends of those that could not begin: every other one would end alike.
    """
    if broken:
        return broken[0]
    return failures[-1] if len(failures) >= _MOST_FAILURES else None


def fits(timeout_s: float | None, left_s: float, whole_s: float) -> bool:
    """Tell whether a trial ends before its pilot; without a `timeout`, whether half of the pilot's time is left."""
    if timeout_s is None:
        return left_s >= _SHARE_WITHOUT_TIMEOUT * whole_s
    return left_s >= timeout_s + _MARGIN_S
