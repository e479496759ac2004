"""The contracts of a search algorithm and of an early-stopping rule, with the rule's options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.space import ParamValues

Curve: TypeAlias = Sequence[tuple[int, float]]
"""A trial's value, by the objective's rule, after each of its reports: (step, value)."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The knowledge about a trial.

    Attributes:
        number: The trial's number in its experiment, from 1.
        params: Its parameters.
        state: Its state.
        value: Its value of the objective; None when it has none.
        more_values: Its values of the further objectives, in their order; None for each that it has none of.
        violations: By metric, how far it is beyond the bound of a constraint; at most 0 where it keeps it.
    """

    number: int
    params: Mapping[str, JsonValue]
    state: TrialState
    value: float | None = None
    more_values: tuple[float | None, ...] = ()
    violations: Mapping[str, float] = field(default_factory=dict)

    @property
    def values(self) -> tuple[float, ...] | None:
        """The values of all objectives; None unless the trial has ended with a finite value of each."""
        found = [value for value in (self.value, *self.more_values) if value is not None and math.isfinite(value)]
        is_whole = len(found) == 1 + len(self.more_values)
        return tuple(found) if is_whole and self.state.is_final else None


class Tuner(Protocol):
    """A source of parameters: its answers follow from the experiment's seed, the trial's number and what it was told.

    A manager that takes an experiment up makes the tuner anew and tells it all trials of the store in order of their
    numbers; then the tuner goes on as if nothing had happened. So it keeps no state besides what it was told.
    """

    def ask(self, number: int) -> ParamValues | None:
        """Give the parameters of trial `number`, or None when the space is used up.

        Numbers grow by one. Until the trial is told, asking again for the last number gives the same parameters.
        """
        ...

    def tell(self, trial: Observation) -> None:
        """Take in what is known of a trial; told again when that changes, also after its end when it is retried."""
        ...


@runtime_checkable
class GenerationTuner(Tuner, Protocol):
    """A tuner whose trials come in generations and go on from the checkpoints of earlier ones."""

    def is_ready(self, number: int) -> bool:
        """Tell whether trial `number` can be asked for: all that it depends on has ended."""
        ...

    def source(self, number: int) -> int | None:
        """Give the trial whose checkpoint trial `number` begins with, as it was asked; None: it begins anew."""
        ...


@dataclass(frozen=True, slots=True)
class StopReason:
    """The reason to stop a trial: its value at a step, and what that was compared with, in words."""

    step: int
    value: float
    compared_with: str


class EarlyStop(Protocol):
    """A judge of whether a running trial is worth continuing."""

    def reason_to_stop(self, number: int, curve: Curve, others: Mapping[int, Curve]) -> StopReason | None:
        """Judge a trial's curve of at least one point against those of the others, by number; None: it continues."""
        ...


@dataclass(frozen=True, slots=True)
class EarlyStopOptions:
    """The options of early-stopping rules; each rule reads its own.

    Attributes:
        warmup_steps: No trial is stopped before it reports this step.
        min_trials: How many other trials must have come as far; None: the rule's own number.
        lower, upper: The bounds of rule `threshold`; None: no bound.
        patience: So many reports without a better value end a trial by rule `patience`.
        min_delta: A value counts as better by rule `patience` when it is so by more than this.
        options: Arguments of a pruner of Optuna.
    """

    warmup_steps: int = 0
    min_trials: int | None = None
    lower: float | None = None
    upper: float | None = None
    patience: int = 10
    min_delta: float = 0.0
    options: JsonObject = field(default_factory=dict)
