"""Early stopping: the objective's curves of an experiment, and the rule that judges them."""

from __future__ import annotations

import math

from jupyter_autotrain.core.tuner import EarlyStop
from jupyter_autotrain.manager.frames import Frames
from jupyter_autotrain.store import Store

Curve = list[tuple[int, float]]


class EarlyStopping:
    """Curves as (step, value), NaN left out, kept in memory only where a rule wants them."""

    def __init__(self, rule: EarlyStop, objective: str) -> None:
        self._rule, self._objective = rule, objective
        self._curves: dict[int, Curve] = {}

    def remember(self, store: Store, experiment_id: str) -> None:
        """Read the curves of before."""
        for number, (steps, values) in store.series(experiment_id, self._objective).items():
            pairs = zip(steps, values, strict=True)
            self._curves[number] = [(step, value) for step, value in pairs if not math.isnan(value)]

    def forget(self, number: int) -> None:
        """A new attempt begins a new curve."""
        self._curves.pop(number, None)

    def should_stop(self, number: int, frames: Frames) -> bool:
        """Take in what a trial reported and judge it.

        Raises:
            Exception: Whatever the rule raises.
        """
        news = [
            (step, value) for name, step, _, value in frames.points if name == self._objective and value is not None
        ]
        if not news:
            return False
        curve = self._curves.setdefault(number, [])
        curve.extend(news)
        return self._rule.should_stop(curve, [c for other, c in self._curves.items() if other != number])
