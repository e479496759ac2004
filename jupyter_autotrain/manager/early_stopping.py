"""Early stopping: the objective's curves of an experiment, and the rule that judges them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from jupyter_autotrain.core.objective import Objective, RunningValue
from jupyter_autotrain.core.text_format import number as shown
from jupyter_autotrain.core.tuner import EarlyStop
from jupyter_autotrain.manager.frames import Frames
from jupyter_autotrain.store import Store


@dataclass(slots=True)
class _Trial:
    """A trial's value after each of its reports; NaN before the first finite one."""

    running: RunningValue
    curve: list[tuple[int, float]] = field(default_factory=list)

    def extend(self, reports: Iterable[tuple[int, float]]) -> None:
        for step, value in reports:
            self.running.add(value)
            self.curve.append((step, math.nan if self.running.value is None else self.running.value))


class EarlyStopping:
    """Curves of the trials' values, kept in memory only where a rule wants them.

    Args:
        rule: Judges a trial.
        objective: What ranks trials.
    """

    def __init__(self, rule: EarlyStop, objective: Objective) -> None:
        self._rule = rule
        self._objective = objective
        self._trials: dict[int, _Trial] = {}

    def remember(self, store: Store, experiment_id: str) -> None:
        """Read the curves of before."""
        for number, (steps, values) in store.series(experiment_id, self._objective.metric).items():
            self.forget(number)
            self._trial(number).extend(zip(steps, values, strict=True))

    def forget(self, number: int) -> None:
        """A new attempt begins a new curve."""
        self._trials.pop(number, None)

    def reason_to_stop(self, number: int, frames: Frames) -> str:
        """Take in what a trial reported and judge it; "" when it may go on.

        Raises:
            Exception: Whatever the rule raises.
        """
        metric = self._objective.metric
        news = [
            (step, math.nan if value is None else value) for name, step, _, value in frames.points if name == metric
        ]
        if not news:
            return ""
        trial = self._trial(number)
        trial.extend(news)
        others = [other.curve for key, other in self._trials.items() if key != number]
        reason = self._rule.reason_to_stop(trial.curve, others)
        if reason is None:
            return ""
        return f"stopped early at step {reason.step}: {shown(reason.value)}; {reason.compared_with}"

    def _trial(self, number: int) -> _Trial:
        return self._trials.setdefault(number, _Trial(RunningValue(self._objective)))
