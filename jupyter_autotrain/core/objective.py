"""What ranks trials: a metric, which way is better, and which of its values count."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """Whether the objective shall grow or shrink."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


class Summary(StrEnum):
    """How the values that a trial reported become one."""

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
        """What views call the value: `val_acc (last)`, `max(val_acc)`, `mean(loss, last=5)`."""
        if self.summary is Summary.LAST:
            return f"{self.metric} (last)"
        newest = "" if self.window is None else f", last={self.window}"
        return f"{self.summary}({self.metric}{newest})"

    def better(self, a: float, b: float) -> bool:
        """True when value `a` beats value `b`."""
        return a > b if self.direction is Direction.MAXIMIZE else a < b

    def value(self, values: Iterable[float]) -> float | None:
        """A trial's value from all it reported, in order; None when nothing of it is finite."""
        running = RunningValue(self)
        running.extend(values)
        return running.value


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
