"""States of trials and experiments, and the one table of legal transitions. Travels to hosts with Python 3.9."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final


class _Text(str, Enum):  # noqa: UP042 - `StrEnum` came with Python 3.11, and its members are made here once
    """An enum whose members are their values, also in a text."""

    __str__ = str.__str__


class TrialState(_Text):
    """The state of one trial."""

    WAITING = "WAITING"
    PREPARING = "PREPARING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    EARLY_STOPPED = "EARLY_STOPPED"
    PREEMPTED = "PREEMPTED"
    LOST = "LOST"

    @property
    def is_final(self) -> bool:
        """True when the trial does not change any more unless it is retried."""
        return self not in ACTIVE_STATES


ACTIVE_STATES: Final = frozenset({TrialState.WAITING, TrialState.PREPARING, TrialState.RUNNING})
_ENDS: Final = frozenset(TrialState) - ACTIVE_STATES

LEGAL_TRANSITIONS: Final[Mapping[TrialState, frozenset[TrialState]]] = MappingProxyType(
    {
        TrialState.WAITING: frozenset({TrialState.PREPARING, TrialState.CANCELLED, TrialState.FAILED}),
        TrialState.PREPARING: _ENDS | {TrialState.RUNNING, TrialState.WAITING},
        TrialState.RUNNING: _ENDS,
        # A retry begins a new attempt of the same trial; success and early stop are kept.
        TrialState.FAILED: frozenset({TrialState.WAITING}),
        TrialState.CANCELLED: frozenset({TrialState.WAITING}),
        TrialState.PREEMPTED: frozenset({TrialState.WAITING}),
        TrialState.LOST: frozenset({TrialState.WAITING}),
        TrialState.SUCCEEDED: frozenset(),
        TrialState.EARLY_STOPPED: frozenset(),
    }
)


@dataclass(frozen=True)
class FinalState:
    """The state that an attempt of a trial shall end in, and why."""

    state: TrialState
    reason: str


class ExperimentState(_Text):
    """The state of one experiment; derived from its trials, never stored."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_final(self) -> bool:
        """True when nothing more will happen without a request."""
        return self in {ExperimentState.SUCCEEDED, ExperimentState.FAILED, ExperimentState.CANCELLED}


def experiment_state(trials: Iterable[TrialState], *, closed: bool, stop_requested: bool) -> ExperimentState:
    """Derive an experiment's state from its trials.

    Args:
        trials: The states of all trials created so far.
        closed: True when no further trial will be created.
        stop_requested: True after a stop request; then it reads CANCELLED, whatever its trials had reached before.
    """
    states = set(trials)
    if states & ACTIVE_STATES or not closed:
        return ExperimentState.STOPPING if stop_requested else _unfinished_state(states)
    if stop_requested or states <= {TrialState.CANCELLED}:
        return ExperimentState.CANCELLED
    if states & {TrialState.SUCCEEDED, TrialState.EARLY_STOPPED}:
        return ExperimentState.SUCCEEDED
    return ExperimentState.FAILED


def _unfinished_state(states: set[TrialState]) -> ExperimentState:
    """Return WAITING where all that is left waits, also after a retry; between two trials return RUNNING."""
    if states & {TrialState.PREPARING, TrialState.RUNNING}:
        return ExperimentState.RUNNING
    return ExperimentState.WAITING if TrialState.WAITING in states or not states else ExperimentState.RUNNING
