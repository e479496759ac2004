"""The rule that ranks trials: a metric, which way is better, and which of its values count.

There is one rule for "best": every trial that has a value counts, whatever its state.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import le, mul
from typing import Protocol, TypeVar


class Direction(StrEnum):
    """The way the objective shall go: up or down."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


class Summary(StrEnum):
    """The way in which the values that a trial reported become one."""

    LAST = "last"
    MAX = "max"
    MIN = "min"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class Objective:
    """The metric that ranks trials, and how a trial's reports of it become the trial's value.

    Only finite values count.

    Attributes:
        metric: Its name.
        direction: Which way is better.
        summary: What is taken of the reported values.
        window: Only so many of the newest values count; None means all.
    """

    metric: str
    direction: Direction = Direction.MAXIMIZE
    summary: Summary = Summary.LAST
    window: int | None = None

    @property
    def label(self) -> str:
        """The name of the value in views: `val_acc (last)`, `max(val_acc)`, `mean(loss, last=5)`."""
        if self.summary is Summary.LAST:
            return f"{self.metric} (last)"
        newest = "" if self.window is None else f", last={self.window}"
        return f"{self.summary}({self.metric}{newest})"

    def better(self, a: float, b: float) -> bool:
        """Tell whether value `a` beats value `b`."""
        return a > b if self.direction is Direction.MAXIMIZE else a < b

    def value(self, values: Iterable[float]) -> float | None:
        """Return a trial's value from all it reported, in order; None when nothing of it is finite."""
        running = RunningValue(self)
        running.extend(values)
        return running.value


@dataclass(frozen=True, slots=True)
class Constraint:
    """A bound that the last reported value of a metric keeps in a good trial.

    Attributes:
        metric: Its name.
        bound: The bound.
        is_upper: True for `metric <= bound`, else `metric >= bound`.
    """

    metric: str
    bound: float
    is_upper: bool = True

    def __str__(self) -> str:
        return f"{self.metric} {'<=' if self.is_upper else '>='} {self.bound:g}"

    def violation(self, value: float) -> float:
        """Return how far a value lies beyond the bound; at most 0 where it keeps it."""
        return value - self.bound if self.is_upper else self.bound - value


class RunningValue:
    """The objective's value of a trial that is still reporting. O(window) per report.

    Args:
        objective: The objective.
        value: Its value so far, where a former one is gone on with.
        count: How many values it was made of.
        recent: The newest of them, at least as many as the window holds.
    """

    def __init__(
        self, objective: Objective, value: float | None = None, count: int = 0, recent: Iterable[float] = ()
    ) -> None:
        self._summary = objective.summary
        self._window = objective.window
        self.value = value
        self.count = count
        self._recent = deque(filter(math.isfinite, recent), maxlen=objective.window or 0)

    def add(self, value: float) -> None:
        """Take in one report; NaN and infinity change nothing."""
        if not math.isfinite(value):
            return
        self.count += 1
        if self._window is not None:
            self._recent.append(value)
            self.value = _summarized(self._summary, self._recent)
        else:
            self.value = value if self.value is None else self._with(self.value, value)

    def extend(self, values: Iterable[float]) -> None:
        """Take in several reports, in order."""
        for value in values:
            self.add(value)

    def _with(self, before: float, value: float) -> float:
        if self._summary is Summary.MAX:
            return max(before, value)
        if self._summary is Summary.MIN:
            return min(before, value)
        if self._summary is Summary.MEAN:
            # The sum of all could overflow where their mean does not.
            return before * ((self.count - 1) / self.count) + value / self.count
        return value


def _summarized(summary: Summary, values: deque[float]) -> float:
    if summary is Summary.MAX:
        return max(values)
    if summary is Summary.MIN:
        return min(values)
    if summary is Summary.MEAN:
        return sum(value / len(values) for value in values)
    return values[-1]


class Rankable(Protocol):
    """An object that can be ranked: a record of a trial, or only its number and value."""

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
    """Return the trials, best first.

    Of equals the earlier comes first; trials without a value come after them, by number.

    Without an objective the order is kept. O(n log n).
    """
    return list(trials) if objective is None else sorted(trials, key=_order(objective))


def best_of(objective: Objective | None, trials: Iterable[R]) -> R | None:
    """Return the first of `ranked`; None without an objective or without any value. O(n)."""
    if objective is None:
        return None
    first = min(trials, key=_order(objective), default=None)
    return None if first is None or first.value is None else first


def _order(objective: Objective) -> Callable[[Rankable], tuple[bool, float, int]]:
    sign = -1.0 if objective.direction is Direction.MAXIMIZE else 1.0

    def key(trial: Rankable) -> tuple[bool, float, int]:
        return trial.value is None, sign * (trial.value or 0.0), trial.number

    return key


def pareto_front(objectives: Sequence[Objective], values: Mapping[int, Sequence[float]]) -> list[int]:
    """Return the trials that no other trial beats in one objective without being worse in another, by number.

    Args:
        objectives: What is optimized.
        values: By trial, its value of each objective, in the same order. O(trials x front).
    """
    signs = [-1.0 if one.direction is Direction.MAXIMIZE else 1.0 for one in objectives]
    costs = {number: tuple(map(mul, signs, found)) for number, found in values.items()}
    front: dict[int, tuple[float, ...]] = {}
    for number, cost in sorted(costs.items(), key=lambda item: (item[1], item[0])):
        if not any(_dominates(other, cost) for other in front.values()):
            front[number] = cost
    return sorted(front)


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    return one != other and all(map(le, one, other))
