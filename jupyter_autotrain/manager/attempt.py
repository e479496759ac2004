"""One attempt of a trial, as the manager holds it while a backend has it."""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_autotrain.core.backend import JobRef, JobStatus
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.core.states import FinalState, TrialState
from jupyter_autotrain.manager.checkpoint_move import CheckpointMove

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

    def schedule_cancel(self, final_state: FinalState, grace_s: float, due_s: float) -> None:
        """Let it be cancelled at a tick, or earlier as decided before; the first decision on its end stays."""
        self.final_state = self.final_state or final_state
        self.grace_s = grace_s
        self.cancel_at_s = due_s if self.cancel_at_s is None else min(due_s, self.cancel_at_s)

    def accepts(self, offset: int) -> bool:
        """False for what was read from a byte on before the stream had to be read again from another one."""
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
        """True when the backend has it, it shall be cancelled by now, and that has not begun."""
        due = self.cancel_at_s is not None and self.cancel_at_s <= tick_s
        return due and self.submitted and self.ref is not None and not self.cancelling
