"""The one rule for "best": every trial that has a value counts, whatever its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from jupyter_autotrain.core.objective import Direction, Objective


class Rankable(Protocol):
    """What can be ranked: a record of a trial, or only its number and value."""

    @property
    def number(self) -> int:
        """The trial's number."""
        ...

    @property
    def value(self) -> float | None:
        """The trial's objective value, if it has one."""
        ...


R = TypeVar("R", bound=Rankable)


def ranked(objective: Objective | None, trials: Iterable[R]) -> list[R]:
    """Best first, of equals the earlier first; trials without a value after them, by number.

    Without an objective the order is kept. O(n log n).
    """
    return list(trials) if objective is None else sorted(trials, key=_order(objective))


def best(objective: Objective | None, trials: Iterable[R]) -> R | None:
    """The first of `ranked`; None without an objective or without any value. O(n)."""
    if objective is None:
        return None
    first = min(trials, key=_order(objective), default=None)
    return None if first is None or first.value is None else first


def _order(objective: Objective) -> Callable[[Rankable], tuple[bool, float, int]]:
    sign = -1.0 if objective.direction is Direction.MAXIMIZE else 1.0

    def key(trial: Rankable) -> tuple[bool, float, int]:
        return trial.value is None, sign * (trial.value or 0.0), trial.number

    return key
