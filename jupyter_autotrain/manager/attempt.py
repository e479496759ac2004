"""One attempt of a trial, as the manager holds it while a place has it."""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_autotrain.core.backend import JobRef, JobStatus
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.manager.final_state import FinalState

GRACE_S = 5.0


@dataclass(slots=True)
class Attempt:
    """An attempt that a place has, or is being given.

    `cancel_at_s` is the tick from which on it shall be cancelled; `last` its end, held back until a cancel is through.
    """

    trial: TrialSpec
    placement: Placement
    ref: JobRef | None = None
    sent: bool = False
    ending: FinalState | None = None
    grace_s: float = GRACE_S
    cancel_at_s: float | None = None
    cancelling: bool = False
    last: JobStatus | None = None
    objective_seen: bool = False

    def is_cancel_due(self, tick_s: float) -> bool:
        """True when the place has it, it shall be cancelled by now, and that has not begun."""
        due = self.cancel_at_s is not None and self.cancel_at_s <= tick_s
        return due and self.sent and self.ref is not None and not self.cancelling
