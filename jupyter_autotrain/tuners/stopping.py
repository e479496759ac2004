"""Early stopping: pure functions of the curves.

A curve is what a trial's value was after each of its reports, by the objective's rule; NaN before the first finite one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.text_format import count, number
from jupyter_autotrain.core.tuner import Curve, StopReason

_LEAST_REPORTS = 2  # a single report is no curve


@dataclass(frozen=True, slots=True)
class MedianStop:
    """Stops a trial whose value is worse than the median of the other trials' values at the same step.

    Source: Golovin et al., Google Vizier, KDD 2017, section 3.2.2, with the objective's own rule in place of best value
    and running mean. O(others x log points) per call.

    Attributes:
        objective: What ranks trials.
        warmup_steps: No trial is judged before it reports this step.
        min_trials: How many others must have come as far before one is stopped.
    """

    objective: Objective
    warmup_steps: int = 0
    min_trials: int = 3

    def reason_to_stop(self, curve: Curve, others: Sequence[Curve]) -> StopReason | None:
        """Judge a trial against the others at its newest step."""
        step, value = curve[-1]
        if len(curve) < _LEAST_REPORTS or step < self.warmup_steps:
            return None
        rivals = [rival for other in others if not math.isnan(rival := _value_at(other, step))]
        if len(rivals) < max(self.min_trials, 1):
            return None
        middle = median(rivals)
        if not _is_worse(self.objective, value, middle):
            return None
        return StopReason(step, value, f"median of {count(len(rivals), 'trial')} at this step {number(middle)}")


@dataclass(frozen=True, slots=True)
class Asha:
    """Asynchronous successive halving: at 1, 3, 9, ... reports only the best third of the trials there continues.

    Source: Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2 (its stopping
    form). O(others x log others) per call and rung.

    Attributes:
        objective: What ranks trials.
        warmup_steps: Rungs at earlier steps stop no trial.
        min_trials: How many others must have reached a rung before one is stopped there.
        first: Reports before the first rung.
        factor: One trial in `factor` continues, and each rung is `factor` times longer.
    """

    objective: Objective
    warmup_steps: int = 0
    min_trials: int = 2
    first: int = 1
    factor: int = 3

    def reason_to_stop(self, curve: Curve, others: Sequence[Curve]) -> StopReason | None:
        """Judge a trial at every rung it has reached."""
        rung = self.first
        while rung <= len(curve):
            if reason := self._reason_at(rung, curve, others):
                return reason
            rung *= self.factor
        return None

    def _reason_at(self, rung: int, curve: Curve, others: Sequence[Curve]) -> StopReason | None:
        step, value = curve[rung - 1]
        rivals = [other[rung - 1][1] for other in others if len(other) >= rung]
        if step < self.warmup_steps or len(rivals) < max(self.min_trials, 1):
            return None
        better = [rival for rival in rivals if _is_worse(self.objective, value, rival)]
        kept = max(1, (len(rivals) + 1) // self.factor)
        if len(better) < kept:
            return None
        better.sort(reverse=self.objective.direction is Direction.MAXIMIZE)
        least = number(better[kept - 1])
        reason = f"the best {kept} of {len(rivals) + 1} trials continue after report {rung}: {least} or better"
        return StopReason(step, value, reason)


def _is_worse(objective: Objective, value: float, other: float) -> bool:
    """True when `other` beats `value`; NaN loses to every number."""
    if math.isnan(other):
        return False
    return math.isnan(value) or objective.better(other, value)


def _value_at(curve: Curve, step: int) -> float:
    """A curve's value at a step; NaN when it has none, or did not come that far."""
    if not curve or curve[-1][0] < step:
        return math.nan
    end = bisect_right(curve, step, key=lambda point: point[0])
    return curve[end - 1][1] if end else math.nan
