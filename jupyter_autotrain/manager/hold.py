"""Holding trials back while no trial has reported the objective: they would all end like the first one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_autotrain.core.backend import JobStatus
from jupyter_autotrain.core.states import FinalState, TrialState
from jupyter_autotrain.core.wording import count


@dataclass(slots=True)
class Hold:
    """Whether further trials of one experiment may begin.

    Attributes:
        seen: True once any trial has reported the objective; then nothing is held back any more.
        reason: Why no further trial begins, as long as running ones may still disprove it; or "".
    """

    seen: bool = False
    reason: str = ""

    def release(self) -> bool:
        """A trial has reported the objective; true when that releases others."""
        held = bool(self.reason)
        self.seen = True
        self.reason = ""
        return held

    def ended(
        self, number: int, objective: str, end: FinalState, status: JobStatus, names: Sequence[str] | None
    ) -> bool:
        """Look at a trial that has ended; true when it holds the others back, and is not to be tried again.

        Args:
            number: The trial.
            objective: The metric that ranks trials, or "".
            end: How it ended.
            status: What the place says.
            names: The metrics reported in place of the objective; None when it was reported.
        """
        without = names is not None or status.detail.get("kind") == "objective"
        if self.seen or not without or end.state is not TrialState.FAILED:
            return False
        self.reason = f"trial {number} ended without reporting the objective {objective!r}"
        return True

    def sentence(self) -> str:
        """What keeps a waiting trial: the rest of a sentence that begins with the trial."""
        return f"waits: {self.reason}; it begins when another trial has reported it"

    def conclusion(self, left: int) -> str:
        """Why `left` trials never began."""
        return f"{self.reason}, so {count(left, 'more trial')} did not begin: correct `objective:` or the reports"
