"""The one rule for "best": every trial that has a value counts, whatever became of it."""

from __future__ import annotations

from collections.abc import Iterable

from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.records import TrialRecord


def ranked(objective: Objective | None, trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Best first, of equals the earlier first; trials without a value after them, by number.

    Without an objective the order is kept. O(n log n).
    """
    if objective is None:
        return list(trials)
    sign = -1.0 if objective.direction is Direction.MAXIMIZE else 1.0

    def rank(trial: TrialRecord) -> tuple[bool, float, int]:
        return trial.value is None, sign * (trial.value or 0.0), trial.number

    return sorted(trials, key=rank)


def best(objective: Objective | None, trials: Iterable[TrialRecord]) -> TrialRecord | None:
    """The first of `ranked`; None without an objective or without any value."""
    first = next(iter(ranked(objective, trials)), None)
    return None if objective is None or first is None or first.value is None else first
