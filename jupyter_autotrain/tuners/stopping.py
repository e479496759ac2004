"""Early stopping: pure functions of the curves."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

Curve = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class MedianStop:
    """Stops a trial whose best value so far is worse than the median of the others' running means at that step.

    Source: Golovin et al., Google Vizier, KDD 2017, section 3.2.2. O(points of the others) per call.

    Attributes:
        maximize: Whether more is better.
        least_trials: How many others must have come as far before anything is stopped.
        least_reports: How many values a trial may report before it is judged.
    """

    maximize: bool
    least_trials: int = 3
    least_reports: int = 2

    def should_stop(self, curve: Curve, others: Sequence[Curve]) -> bool:
        """Judge a trial against the others."""
        if len(curve) < self.least_reports:
            return False
        sign, step = (1 if self.maximize else -1), curve[-1][0]
        best = max((sign * value for _, value in curve if not math.isnan(value)), default=-math.inf)
        means = [sign * mean for other in others if (mean := _mean_until(other, step)) is not None]
        return len(means) >= self.least_trials and best < median(means)


def _mean_until(curve: Curve, step: int) -> float | None:
    """The mean of a curve up to a step; None when it did not come that far, or has no numbers."""
    if not curve or curve[-1][0] < step:
        return None
    end = bisect_right(curve, step, key=lambda point: point[0])
    values = [value for _, value in curve[:end] if not math.isnan(value)]
    return math.fsum(values) / len(values) if values and all(map(math.isfinite, values)) else None


@dataclass(frozen=True, slots=True)
class Asha:
    """Asynchronous successive halving: at 1, 3, 9, ... reports only the best third of those that came there goes on.

    Source: Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2 (its stopping
    form). A trial goes on while fewer than `factor` trials reached its rung. O(others) per call and rung.

    Attributes:
        maximize: Whether more is better.
        first: Reports before the first rung.
        factor: One in so many goes on, and each rung is so many times longer.
    """

    maximize: bool
    first: int = 1
    factor: int = 3

    def should_stop(self, curve: Curve, others: Sequence[Curve]) -> bool:
        """Judge a trial at every rung it has reached."""
        rung = self.first
        while rung <= len(curve):
            rivals = [self._best(other, rung) for other in others if len(other) >= rung]
            own = self._best(curve, rung)
            if sum(rival > own for rival in rivals) >= max(1, (len(rivals) + 1) // self.factor) and (
                len(rivals) + 1 >= self.factor
            ):
                return True
            rung *= self.factor
        return False

    def _best(self, curve: Curve, rung: int) -> float:
        sign = 1 if self.maximize else -1
        return max((sign * value for _, value in curve[:rung] if not math.isnan(value)), default=-math.inf)
