"""The contract of a search algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.space import ParamValues
from jupyter_autotrain.core.states import TrialState

Curve: TypeAlias = Sequence[tuple[int, float]]
"""A trial's value, by the objective's rule, after each of its reports: (step, value)."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of a trial: its parameters, its state, and its objective value if it has one."""

    number: int
    params: Mapping[str, JsonValue]
    state: TrialState
    value: float | None = None


class Tuner(Protocol):
    """Suggests parameters. Everything known comes with each call: a restarted manager needs no memory."""

    def suggest(self, number: int, history: Sequence[Observation]) -> ParamValues | None:
        """Give the parameters of trial `number`, or None when the space is used up."""
        ...


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why a trial is not worth continuing: its value at a step, and what that was compared with, in words."""

    step: int
    value: float
    compared_with: str


class EarlyStop(Protocol):
    """Decides whether a running trial is worth continuing."""

    def reason_to_stop(self, curve: Curve, others: Sequence[Curve]) -> StopReason | None:
        """Judge a trial's curve, which has a point at least, against the curves of the others; None: it continues."""
        ...
