"""The contract of a search algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.space import Params
from jupyter_autotrain.core.states import TrialState


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of a trial: its parameters, its state, and its objective value if it has one."""

    number: int
    params: Mapping[str, JsonValue]
    state: TrialState
    value: float | None = None


class Tuner(Protocol):
    """Suggests parameters. Everything known comes with each call: a restarted manager needs no memory."""

    def suggest(self, number: int, history: Sequence[Observation]) -> Params | None:
        """Give the parameters of trial `number`, or None when the space is used up."""
        ...


class EarlyStop(Protocol):
    """Decides whether a running trial is worth going on with."""

    def should_stop(self, curve: Sequence[tuple[int, float]], others: Sequence[Sequence[tuple[int, float]]]) -> bool:
        """Judge a trial's (step, value) curve against the curves of the others."""
        ...
