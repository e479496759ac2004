"""Early stopping by extrapolation: a trial that will not reach the best of the others by the end is stopped.

Variables: limit `a`, gain `b` and rate `c` of the curve `a + b * n**-c` over reports n = 1, 2, ...
Objective: the least sum of squares over the newer half of the reports, which count for where a curve goes.
Method: for each of a few rates the line through (n**-c, value) in closed form; the best of them. O(rates x reports).
Source: the power law `pow3` of Domhan et al., IJCAI 2015, section 3.1, without their Markov chains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.core.text_format import number as shown
from jupyter_autotrain.core.tuner import Curve, StopReason

_RATES = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
_LEAST_REPORTS = 6
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
        is_early = len(curve) < max(_LEAST_REPORTS, _LEAST_SHARE * end) or step < self.warmup_steps
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
