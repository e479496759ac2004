"""Where the attempts of an experiment are and were, and what they took there: from its log of state changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from jupyter_autotrain.core.records import StateChange
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.manager.completion_time import BackendTimes


def refusal(placement: Placement, reason: str) -> str:
    """The reason of the state change by which a trial comes back from where it is refused."""
    nodes = ", ".join(one.node for one in placement.nodes)
    return f"{placement.backend} refuses it{f' on {nodes}' if nodes else ''}: {reason}"


def nodes_of(placement: Placement) -> list[str]:
    """The nodes of a placement; "" where they are not known, which stands for the backend."""
    return [one.node for one in placement.nodes] or [""]


@dataclass(slots=True)
class _Placed:
    """An attempt that a backend has."""

    placement: Placement
    placed_s: float
    started_s: float | None = None


@dataclass(slots=True)
class AttemptHistory:
    """Follows the state changes of an experiment's trials."""

    _times: dict[str, BackendTimes] = field(default_factory=dict)
    _placed: dict[int, _Placed] = field(default_factory=dict)
    _lost: dict[int, set[tuple[str, str]]] = field(default_factory=dict)
    _last: dict[int, Placement] = field(default_factory=dict)  # of the attempts that ran and ended
    _again: dict[int, str] = field(default_factory=dict)  # why a later attempt was begun
    _refusals: dict[int, dict[str, dict[str, str]]] = field(default_factory=dict)  # of the present attempt

    @classmethod
    def of(cls, changes: Iterable[StateChange]) -> AttemptHistory:
        """The history that the store has."""
        history = cls()
        for change in changes:
            history.follow(change.number, change.state, change.time_s, change.placement, change.reason)
        return history

    def follow(
        self, number: int, state: TrialState, now_s: float, placement: Placement | None = None, reason: str = ""
    ) -> None:
        """Follow one state change of a trial."""
        if state is TrialState.PREPARING and placement is not None:
            self._placed[number] = _Placed(placement, now_s)
        elif state is TrialState.RUNNING and number in self._placed:
            self._placed[number].started_s = now_s
        elif state is TrialState.WAITING and number not in self._placed:
            self._again[number] = reason
            self._refusals.pop(number, None)
        elif state not in {TrialState.PREPARING, TrialState.RUNNING}:
            self._leave(number, state, now_s, reason)

    def _leave(self, number: int, state: TrialState, now_s: float, reason: str) -> None:
        placed = self._placed.pop(number, None)
        if placed is not None and placed.started_s is not None:
            self._last[number] = placed.placement
        if placed is None:
            return
        if state is TrialState.WAITING:
            self._come_back(number, placed.placement, reason)
            return
        started_s = placed.placed_s if placed.started_s is None else placed.started_s
        self.times(placed.placement.backend).add(state, started_s - placed.placed_s, now_s - started_s)
        if state is TrialState.LOST:
            backend = placed.placement.backend
            self._lost.setdefault(number, set()).update((backend, node) for node in nodes_of(placed.placement))

    def _come_back(self, number: int, placement: Placement, reason: str) -> None:
        """Take a trial back that a backend has not begun; a node that refuses it is not asked for it again."""
        if reason.startswith(refusal(placement, "")):
            there = self._refusals.setdefault(number, {}).setdefault(placement.backend, {})
            there.update(dict.fromkeys(nodes_of(placement), reason))
            self.times(placement.backend).add(TrialState.FAILED, 0.0, 0.0)

    def refused_by(self, number: int, backend: str) -> dict[str, str]:
        """What the nodes of a backend say that refuse the present attempt of a trial; "": the backend as a whole."""
        return self._refusals.get(number, {}).get(backend, {})

    def refusals(self, number: int) -> list[str]:
        """What all of them say, each once."""
        said = [reason for there in self._refusals.get(number, {}).values() for reason in there.values()]
        return list(dict.fromkeys(said))

    def remark(self, number: int) -> str:
        """Why a trial has a later attempt, and why it is not somewhere else; "" where there is nothing to tell."""
        return "; ".join(filter(None, (self._again.get(number, ""), *self.refusals(number))))

    def times(self, backend: str) -> BackendTimes:
        """What trials took on a backend, by its name."""
        return self._times.setdefault(backend, BackendTimes())

    def ages_s(self, backend: str, now_s: float) -> tuple[float, ...]:
        """Of the trials that a backend has: the time since each was put there."""
        there = [placed for placed in self._placed.values() if placed.placement.backend == backend]
        return tuple(max(now_s - placed.placed_s, 0.0) for placed in there)

    def count(self, backend: str) -> int:
        """How many trials a backend has now."""
        return sum(placed.placement.backend == backend for placed in self._placed.values())

    def is_lost(self, number: int) -> bool:
        """Whether an earlier attempt of a trial was lost."""
        return number in self._lost

    def last_on(self, number: int, backend: str) -> frozenset[str]:
        """The nodes of a backend that the trial ran on last; none where that was on another backend."""
        last = self._last.get(number)
        return frozenset(one.node for one in last.nodes) if last and last.backend == backend else frozenset()

    def lost_by(self, number: int, backend: str) -> frozenset[str]:
        """The nodes of a backend that lost earlier attempts of a trial; "" where they are not known."""
        return frozenset(node for name, node in self._lost.get(number, ()) if name == backend)
