"""When trials and experiments end before they are through."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EarlyStopOptions:
    """When an early-stopping rule may begin to judge.

    Attributes:
        warmup_steps: No trial is stopped before it reports this step.
        min_trials: How many other trials must have come as far; None: the rule's own number.
    """

    warmup_steps: int = 0
    min_trials: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """When an experiment ends before its trials are used up."""

    time_s: float | None = None
    failures: int | None = None
