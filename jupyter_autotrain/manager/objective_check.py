"""Blocks further trials when a trial ends without a report of the objective: they would all end like that one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_autotrain.core.backend import JobStatus
from jupyter_autotrain.core.states import FinalState, TrialState
from jupyter_autotrain.core.text_format import count


@dataclass(slots=True)
class ObjectiveCheck:
    """Whether further trials of one experiment may begin.

    Attributes:
        is_reported: True once any trial has reported the objective; then nothing is blocked any more.
        reason: Why no further trial begins, as long as a running one may still report it; or "".
    """

    is_reported: bool = False
    reason: str = ""

    def mark_reported(self) -> bool:
        """A trial has reported the objective; true when that unblocks others."""
        was_blocking = bool(self.reason)
        self.is_reported = True
        self.reason = ""
        return was_blocking

    def check_end(
        self, number: int, objective: str, end: FinalState, status: JobStatus, names: Sequence[str] | None
    ) -> bool:
        """Check a trial that has ended; true when it blocks the others, and is not to be tried again.

        Args:
            number: The trial.
            objective: The metric that ranks trials, or "".
            end: How it ended.
            status: The status that the backend gives.
            names: The metrics reported in place of the objective; None when it was reported.
        """
        without = names is not None or status.detail.get("kind") == "objective"
        if self.is_reported or not without or end.state is not TrialState.FAILED:
            return False
        self.reason = f"trial {number} ended without reporting the objective {objective!r}"
        return True

    def block_reason(self) -> str:
        """What blocks a waiting trial: the rest of a sentence that begins with the trial."""
        return f"waits: {self.reason}; it begins when another trial has reported it"

    def closing_reason(self, left: int) -> str:
        """Why `left` trials never began."""
        return f"{self.reason}, so {count(left, 'more trial')} did not begin: correct `objective:` or the reports"
