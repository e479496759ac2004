"""The objective while trials run: curves that stop a trial early, and trials that end without having reported it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.backend import JobStatus
from jupyter_autotrain.core.objective import Objective, RunningValue
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.core.text_format import number as shown
from jupyter_autotrain.core.tuner import EarlyStop
from jupyter_autotrain.manager.jobs.metrics_stream import Frames
from jupyter_autotrain.store import Store


@dataclass(slots=True)
class ObjectiveCheck:
    """The rule by which further trials of one experiment may begin.

    Attributes:
        is_reported: True once any trial has reported the objective; then nothing is blocked any more.
        reason: Why no further trial begins, as long as a running one may still report it; or "".
    """

    is_reported: bool = False
    reason: str = ""

    def mark_reported(self) -> bool:
        """Return a trial has reported the objective; true when that unblocks others."""
        was_blocking = bool(self.reason)
        self.is_reported = True
        self.reason = ""
        return was_blocking

    def check_end(
        self, number: int, objective: str, end: FinalState, status: JobStatus, names: Sequence[str] | None
    ) -> bool:
        """Check a trial that has ended; true when it blocks the others, and is not to be tried again.

        Args:
            number: The trial.
            objective: The metric that ranks trials, or "".
            end: How it ended.
            status: The status that the backend gives.
            names: The metrics reported in place of the objective; None when it was reported.
        """
        without = names is not None or status.detail.get("kind") == "objective"
        if self.is_reported or not without or end.state is not TrialState.FAILED:
            return False
        self.reason = f"trial {number} ended without reporting the objective {objective!r}"
        return True

    def block_reason(self) -> str:
        """Return what blocks a waiting trial: the rest of a sentence that begins with the trial."""
        return f"waits: {self.reason}; it begins when another trial has reported it"

    def closing_reason(self, left: int) -> str:
        """Why `left` trials never began."""
        return f"{self.reason}, so {count(left, 'more trial')} did not begin: correct `objective:` or the reports"


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
        """Begin a new curve for a new attempt."""
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
        others = {key: other.curve for key, other in self._trials.items() if key != number}
        reason = self._rule.reason_to_stop(number, trial.curve, others)
        if reason is None:
            return ""
        return f"stopped early at step {reason.step}: {shown(reason.value)}; {reason.compared_with}"

    def _trial(self, number: int) -> _Trial:
        return self._trials.setdefault(number, _Trial(RunningValue(self._objective)))
