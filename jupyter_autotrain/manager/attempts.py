"""The attempts of an experiment's trials: one as the manager holds it, and where they are and were by the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.backend import JobRef, JobStatus
from jupyter_autotrain.core.records import StateChange
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.manager.artifact_sync import CheckpointMove
from jupyter_autotrain.manager.completion_time import BackendTimes

GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Silence:
    """Why nodes of an attempt do not answer; all of its nodes where none are named."""

    reason: str
    nodes: tuple[str, ...] = ()


@dataclass(slots=True)
class Attempt:
    """An attempt that a backend has, or is being given.

    Attributes:
        final_state: What the manager decided to end it with, if it did; in the store too.
        cancel_at_s: The tick at which it is cancelled.
        overdue_s: The tick from which on a stop does not wait for its cancel.
        pending_status: Its final status, held back until its cancel has returned.
        read_again_from: The byte from which its stream has to be read again, until that has begun.
        may_run: A submit was begun of which it is not known whether it started the trial, so it stays on its backend.
        submit_at_s: The tick from which on it is submitted, again; at `submitted_s` that was done.
        unreachable: Which of its nodes do not answer, as polling found; `uncancelled` as its cancel found.
        gpus_asked: The last word of a session on its GPUs: which turn, and whether it wants them; `gpus_answered`: that
            which was done.
        move: Of the checkpoints that it goes on from, while they may be on their way.
    """

    trial: TrialSpec
    placement: Placement
    ref: JobRef | None = None
    submitted: bool = False
    submitted_s: float = 0.0
    final_state: FinalState | None = None
    grace_s: float = GRACE_S
    stop_asked: bool = False
    cancel_at_s: float | None = None
    cancelling: bool = False
    overdue_s: float = 0.0
    pending_status: JobStatus | None = None
    objective_seen: bool = False
    read_again_from: int | None = None
    may_run: bool = False
    submit_at_s: float = 0.0
    unreachable: Silence | None = None
    uncancelled: Silence | None = None
    move: CheckpointMove | None = None
    gpus_asked: tuple[int, bool] | None = None
    gpus_answered: tuple[int, bool] | None = None

    def schedule_cancel(self, final_state: FinalState, grace_s: float, due_s: float) -> None:
        """Let it be cancelled at a tick, or earlier as decided before; the first decision on its end stays."""
        self.final_state = self.final_state or final_state
        self.grace_s = grace_s
        self.cancel_at_s = due_s if self.cancel_at_s is None else min(due_s, self.cancel_at_s)

    def accepts(self, offset: int) -> bool:
        """Return False for what was read from a byte on before the stream had to be read again from another one."""
        if self.read_again_from in {None, offset}:
            self.read_again_from = None
        return self.read_again_from is None

    @property
    def is_being_started(self) -> bool:
        """True while a backend is given it that has not said yet that it has it."""
        return self.submitted and self.ref is None

    @property
    def is_stop_due(self) -> bool:
        """True when the backend has it, it shall end early, and it has not been asked to end itself."""
        early = self.final_state is not None and self.final_state.state is TrialState.EARLY_STOPPED
        return early and self.submitted and self.ref is not None and not self.stop_asked

    def is_cancel_due(self, tick_s: float) -> bool:
        """Return True when the backend has it, it shall be cancelled by now, and that has not begun."""
        due = self.cancel_at_s is not None and self.cancel_at_s <= tick_s
        return due and self.submitted and self.ref is not None and not self.cancelling


MOVES = "it is tried once more elsewhere"
_NAMED = 3  # nodes of a refusal


def refusal(placement: Placement, reason: str) -> str:
    """Return the reason of the state change by which a trial comes back from where it is refused."""
    return _refusal(placement.backend, nodes_of(placement), reason)


def _refusal(backend: str, nodes: Sequence[str], reason: str) -> str:
    more = f" and {len(nodes) - _NAMED + 1} more" if len(nodes) > _NAMED else ""
    named = ", ".join(nodes[: _NAMED - 1] if more else nodes) + more
    return f"{backend} refuses it{f' on {named}' if named else ''}: {reason}"


def nodes_of(placement: Placement) -> list[str]:
    """Return the nodes of a placement; "" where they are not known, which stands for the backend."""
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
        """Return the history that the store has."""
        history = cls()
        for change in changes:
            history.follow(change.number, change.state, change.time_s, change.placement, change.reason)
        return history

    def follow(
        self, number: int, state: TrialState, now_s: float, placement: Placement | None = None, reason: str = ""
    ) -> None:
        """Follow one state change of a trial."""
        if state in {TrialState.PREPARING, TrialState.RUNNING}:
            self._come(number, state, now_s, placement)
            return
        if state is TrialState.WAITING and number not in self._placed:
            self._again[number] = reason
            self._refusals.pop(number, None)
            return
        self._leave(number, state, now_s)
        if state is TrialState.LOST and reason.endswith(MOVES):
            self._moved.add(number)
        if state is TrialState.WAITING and placement is not None:
            self._come_back(number, placement, reason)

    def _come(self, number: int, state: TrialState, now_s: float, placement: Placement | None) -> None:
        if state is TrialState.RUNNING:
            if number in self._placed:
                self._placed[number].started_s = now_s
        elif placement is not None:
            self._placed[number] = _Placed(placement, now_s)

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
        """Return what the nodes of a backend say that refuse the present attempt of a trial.

        "": the backend as a whole.
        """
        return self._refusals.get(number, {}).get(backend, {})

    def refusals(self, number: int) -> list[str]:
        """Return what all of them say; those of a backend that say the same once."""
        nodes: dict[tuple[str, str], list[str]] = {}
        for backend, there in self._refusals.get(number, {}).items():
            for node, reason in there.items():
                nodes.setdefault((backend, reason), []).append(node)
        return [_refusal(backend, group, reason) for (backend, reason), group in nodes.items()]

    def remark(self, number: int) -> str:
        """Why a trial has a later attempt, and why it is not somewhere else; "" where there is nothing to tell."""
        return "; ".join(filter(None, (self._again.get(number, ""), *self.refusals(number))))

    def times(self, backend: str) -> BackendTimes:
        """Return what trials took on a backend, by its name."""
        return self._times.setdefault(backend, BackendTimes())

    def ages_s(self, backend: str, now_s: float) -> tuple[float, ...]:
        """Return of the trials that a backend has: the time since each was put there."""
        there = [placed for placed in self._placed.values() if placed.placement.backend == backend]
        return tuple(max(now_s - placed.placed_s, 0.0) for placed in there)

    def count(self, backend: str) -> int:
        """Return how many trials a backend has now."""
        return sum(placed.placement.backend == backend for placed in self._placed.values())

    def is_usual(self, number: int) -> bool:
        """Return whether no attempt of a trial was lost, and none of its present attempt is refused anywhere."""
        return number not in self._lost and number not in self._refusals

    def has_moved(self, number: int) -> bool:
        """Return whether a trial was, or is to be, tried once more because its place was lost."""
        return number in self._moved

    def last_on(self, number: int, backend: str) -> frozenset[str]:
        """Return the nodes of a backend that the trial ran on last; none where that was on another backend."""
        last = self._last.get(number)
        return frozenset(one.node for one in last.nodes) if last and last.backend == backend else frozenset()

    def lost_by(self, number: int, backend: str) -> frozenset[str]:
        """Return the nodes of a backend that lost earlier attempts of a trial; "" where they are not known."""
        return frozenset(node for name, node in self._lost.get(number, ()) if name == backend)
