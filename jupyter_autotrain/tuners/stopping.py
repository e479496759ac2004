"""Early stopping: pure functions of the curves.

A curve is what a trial's value was after each of its reports, by the objective's rule; NaN before the first finite one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.core.text_format import number as shown
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

    def reason_to_stop(self, number: int, curve: Curve, others: Mapping[int, Curve]) -> StopReason | None:  # noqa: ARG002 - the contract's
        """Judge a trial against the others at its newest step."""
        step, value = curve[-1]
        if len(curve) < _LEAST_REPORTS or step < self.warmup_steps:
            return None
        rivals = [rival for other in others.values() if not math.isnan(rival := _value_at(other, step))]
        if len(rivals) < max(self.min_trials, 1):
            return None
        middle = median(rivals)
        if not _is_worse(self.objective, value, middle):
            return None
        return StopReason(step, value, f"median of {count(len(rivals), 'trial')} at this step {shown(middle)}")


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

    def reason_to_stop(self, number: int, curve: Curve, others: Mapping[int, Curve]) -> StopReason | None:  # noqa: ARG002 - the contract's
        """Judge a trial at every rung it has reached."""
        rung = self.first
        while rung <= len(curve):
            if reason := self._reason_at(rung, curve, [*others.values()]):
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
        least = shown(better[kept - 1])
        reason = f"the best {kept} of {len(rivals) + 1} trials continue after report {rung}: {least} or better"
        return StopReason(step, value, reason)


@dataclass(frozen=True, slots=True)
class Hyperband:
    """Asynchronous successive halving in brackets, of which each begins later: one bad beginning costs no slow starter.

    Trial `n` belongs to bracket `n % brackets`, and is compared with trials of its bracket alone.
    Source: Li et al., Hyperband, JMLR 2018; its asynchronous form: Li et al., MLSys 2020, section 3.3.

    Attributes:
        objective: What ranks trials.
        warmup_steps: Rungs at earlier steps stop no trial.
        min_trials: How many others of the bracket must have reached a rung before one is stopped there.
        brackets: How many there are; the first rung of bracket b is after `factor**b` reports.
        factor: As of `Asha`.
    """

    objective: Objective
    warmup_steps: int = 0
    min_trials: int = 2
    brackets: int = 3
    factor: int = 3

    def reason_to_stop(self, number: int, curve: Curve, others: Mapping[int, Curve]) -> StopReason | None:
        """Judge a trial at every rung of its bracket that it has reached."""
        bracket = number % self.brackets
        rule = Asha(self.objective, self.warmup_steps, self.min_trials, self.factor**bracket, self.factor)
        same = {key: other for key, other in others.items() if key % self.brackets == bracket}
        return rule.reason_to_stop(number, curve, same)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Stops a trial whose value leaves given bounds, or is no number.

    Attributes:
        warmup_steps: No trial is judged before it reports this step.
        lower: The least value; None: any.
        upper: The largest value; None: any.
    """

    warmup_steps: int = 0
    lower: float | None = None
    upper: float | None = None

    def reason_to_stop(self, number: int, curve: Curve, others: Mapping[int, Curve]) -> StopReason | None:  # noqa: ARG002 - the contract's
        """Judge a trial's newest value."""
        step, value = curve[-1]
        if step < self.warmup_steps:
            return None
        if math.isnan(value):
            return StopReason(step, value, "no number")
        if self.lower is not None and value < self.lower:
            return StopReason(step, value, f"below the bound {shown(self.lower)}")
        if self.upper is not None and value > self.upper:
            return StopReason(step, value, f"above the bound {shown(self.upper)}")
        return None


@dataclass(frozen=True, slots=True)
class Patience:
    """Stops a trial that has not become better for some reports.

    Attributes:
        objective: What ranks trials.
        warmup_steps: No trial is judged before it reports this step.
        patience: For how many reports it may not become better.
        min_delta: By how much more than this a value has to be better.
    """

    objective: Objective
    warmup_steps: int = 0
    patience: int = 10
    min_delta: float = 0.0

    def reason_to_stop(self, number: int, curve: Curve, others: Mapping[int, Curve]) -> StopReason | None:  # noqa: ARG002 - the contract's
        """Judge a trial by its own curve. O(reports)."""
        step, value = curve[-1]
        if step < self.warmup_steps:
            return None
        best = math.nan
        at = 0
        for position, (_, one) in enumerate(curve):
            if _is_worse(self.objective, best, one) and not abs(one - best) <= self.min_delta:
                best = one
                at = position
        if len(curve) - 1 - at < self.patience:
            return None
        return StopReason(step, value, f"best was {shown(best)} at step {curve[at][0]}, {self.patience} reports ago")


def _is_worse(objective: Objective, value: float, other: float) -> bool:
    """Tell whether `other` beats `value`; NaN loses to every number."""
    if math.isnan(other):
        return False
    return math.isnan(value) or objective.better(other, value)


def _value_at(curve: Curve, step: int) -> float:
    """Return a curve's value at a step; NaN when it has none, or did not come that far."""
    if not curve or curve[-1][0] < step:
        return math.nan
    end = bisect_right(curve, step, key=lambda point: point[0])
    return curve[end - 1][1] if end else math.nan


# Extrapolation: a trial that will not reach the best of the others by the end is stopped.
#
# Variables: limit `a`, gain `b` and rate `c` of the curve `a + b * n**-c` over reports n = 1, 2, ...
# Objective: the least sum of squares over the newer half of the reports, which count for where a curve goes.
# Method: for each of a few rates the line through (n**-c, value) in closed form; the best of them. O(rates x reports).
# Source: the power law `pow3` of Domhan et al., IJCAI 2015, section 3.1, without their Markov chains.


_RATES = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
_LEAST_FITTED = 6
_MARGIN = 3.0  # standard deviations of the fit that the forecast is given
_LEAST_SHARE = 0.3  # of the reports of the longest curve


@dataclass(frozen=True, slots=True)
class CurveStop:
    """Stops a trial whose extrapolated end, with a margin, is worse than the best end of the others.

    Attributes:
        objective: What ranks trials.
        warmup_steps: No trial is judged before it reports this step.
        min_trials: How many others must have ended as late as any.
    """

    objective: Objective
    warmup_steps: int = 0
    min_trials: int = 1

    def reason_to_stop(self, number: int, curve: Curve, others: Mapping[int, Curve]) -> StopReason | None:  # noqa: ARG002 - the contract's
        """Judge a trial by where its curve goes."""
        step, value = curve[-1]
        end = max(map(len, others.values()), default=0)
        ends = [other[-1][1] for other in others.values() if len(other) == end and math.isfinite(other[-1][1])]
        is_early = len(curve) < max(_LEAST_FITTED, _LEAST_SHARE * end) or step < self.warmup_steps
        if is_early or len(curve) >= end or len(ends) < max(self.min_trials, 1):
            return None
        sign = 1 if self.objective.direction is Direction.MAXIMIZE else -1
        best = max(ends, key=lambda one: sign * one)
        forecast = _forecast([one for _, one in curve], end)
        if forecast is None or sign * forecast[0] + _MARGIN * forecast[1] >= sign * best:
            return None
        text = f"its curve goes to {shown(forecast[0])} after {count(end, 'report')}, the best has {shown(best)}"
        return StopReason(step, value, text)


def _forecast(values: Sequence[float], end: int) -> tuple[float, float] | None:
    """Return the value of the best power law after `end` reports, and the standard deviation of its fit."""
    if not all(map(math.isfinite, values)):
        return None
    first = len(values) // 2
    numbers = range(first + 1, len(values) + 1)
    fits = [_fit(rate, numbers, values[first:], end) for rate in _RATES]
    deviation, forecast = min(fits)
    return forecast, deviation


def _fit(rate: float, numbers: Sequence[int], values: Sequence[float], end: int) -> tuple[float, float]:
    """Return the standard deviation of the line through (n**-rate, value), and its value at `end`."""
    places = [n**-rate for n in numbers]
    middle = math.fsum(places) / len(places)
    mean = math.fsum(values) / len(values)
    spread = math.fsum((place - middle) ** 2 for place in places)
    gain = math.fsum((place - middle) * value for place, value in zip(places, values, strict=True)) / spread
    limit = mean - gain * middle
    squares = [(limit + gain * place - value) ** 2 for place, value in zip(places, values, strict=True)]
    return math.sqrt(math.fsum(squares) / len(squares)), limit + gain * end**-rate
