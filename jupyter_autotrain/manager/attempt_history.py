"""Where the attempts of an experiment are and were, and what they took there: from its log of state changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.core.records import StateChange
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.manager.completion_time import BackendTimes

MOVES = "it is tried once more elsewhere"
_NAMED = 3  # nodes of a refusal


def refusal(placement: Placement, reason: str) -> str:
    """The reason of the state change by which a trial comes back from where it is refused."""
    return _refusal(placement.backend, nodes_of(placement), reason)


def _refusal(backend: str, nodes: Sequence[str], reason: str) -> str:
    more = f" and {len(nodes) - _NAMED + 1} more" if len(nodes) > _NAMED else ""
    named = ", ".join(nodes[: _NAMED - 1] if more else nodes) + more
    return f"{backend} refuses it{f' on {named}' if named else ''}: {reason}"


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
    _moved: set[int] = field(default_factory=set)  # trials that a lost place has cost an attempt
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
            self._leave(number, state, now_s)
            if state is TrialState.LOST and reason.endswith(MOVES):
                self._moved.add(number)
            if state is TrialState.WAITING and placement is not None:
                self._come_back(number, placement, reason)

    def _leave(self, number: int, state: TrialState, now_s: float) -> None:
        placed = self._placed.pop(number, None)
        if placed is not None and placed.started_s is not None:
            self._last[number] = placed.placement
        if placed is None or state is TrialState.WAITING:
            return
        started_s = placed.placed_s if placed.started_s is None else placed.started_s
        self.times(placed.placement.backend).add(state, started_s - placed.placed_s, now_s - started_s)
        if state is TrialState.LOST:
            backend = placed.placement.backend
            self._lost.setdefault(number, set()).update((backend, node) for node in nodes_of(placed.placement))

    def _come_back(self, number: int, placement: Placement, reason: str) -> None:
        """Take a trial back that is refused; however many nodes of a backend do that, it has failed there once."""
        if not self.refused_by(number, placement.backend):
            self.times(placement.backend).add(TrialState.FAILED, 0.0, 0.0)
        self.refuse(number, placement, reason.removeprefix(refusal(placement, "")))

    def refuse(self, number: int, placement: Placement, reason: str) -> None:
        """Ask these nodes not again for the present attempt of a trial."""
        there = self._refusals.setdefault(number, {}).setdefault(placement.backend, {})
        there.update(dict.fromkeys(nodes_of(placement), reason))

    def refused_by(self, number: int, backend: str) -> dict[str, str]:
        """What the nodes of a backend say that refuse the present attempt of a trial; "": the backend as a whole."""
        return self._refusals.get(number, {}).get(backend, {})

    def refusals(self, number: int) -> list[str]:
        """What all of them say; those of a backend that say the same once."""
        nodes: dict[tuple[str, str], list[str]] = {}
        for backend, there in self._refusals.get(number, {}).items():
            for node, reason in there.items():
                nodes.setdefault((backend, reason), []).append(node)
        return [_refusal(backend, group, reason) for (backend, reason), group in nodes.items()]

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

    def has_moved(self, number: int) -> bool:
        """Whether a trial was, or is to be, tried once more because its place was lost."""
        return number in self._moved

    def last_on(self, number: int, backend: str) -> frozenset[str]:
        """The nodes of a backend that the trial ran on last; none where that was on another backend."""
        last = self._last.get(number)
        return frozenset(one.node for one in last.nodes) if last and last.backend == backend else frozenset()

    def lost_by(self, number: int, backend: str) -> frozenset[str]:
        """The nodes of a backend that lost earlier attempts of a trial; "" where they are not known."""
        return frozenset(node for name, node in self._lost.get(number, ()) if name == backend)
