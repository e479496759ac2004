"""The receipt of a stop: the processes and jobs that it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_autotrain.agent.json import JsonObject, from_json
from jupyter_autotrain.core.backend import CancelReceipt


@dataclass(frozen=True, slots=True, repr=False)
class StopReceipt(CancelReceipt):
    """Proof of a stop: which processes were ended, which needed force, which are left, and how long it took.

    Its text, which a notebook shows where it is the value of a cell, is one line, and one for each warning.

    Attributes:
        name: What was stopped.
        unreported: The stopped trials of which it is not known which processes ended.
        warnings: What the stopped trials warned of.
        left_there: What stopped trials have left where they ran, a sentence for each place.
        pending: What has not ended yet though its node answers, a sentence for each place.
        unreachable: Nodes that do not answer, a sentence each: what goes on there is stopped as soon as they do.
    """

    name: str = ""
    unreported: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()
    left_there: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, result: JsonObject, warnings: Sequence[str] = (), left_there: Sequence[str] = ()
    ) -> StopReceipt:
        """Read the manager's answer to a stop request of the experiment `name`, whose trials warned of something."""
        more = {"name": name, "warnings": list(warnings), "left_there": list(left_there)}
        return from_json(cls, {**result, **more})

    def __str__(self) -> str:
        later = [f"{sentence} until it does: then they are stopped." for sentence in self.unreachable]
        return "\n".join([self._sentence(), *self.left_there, *later, *self.pending, *self.warnings])

    def _sentence(self) -> str:
        ended = sorted({*self.pids_ended, *self.pids_killed})
        if not ended and not self.pids_left and not self.unreported:
            if self.note:
                return f"{self.name}: {self.note}; no process was running."
            if self.unreachable or self.pending:
                return f"{self.name}: the stop is noted; no process has been ended yet."
        text = f"{self.name}: stopped in {self.elapsed_s:.1f} s; {self._told_of(ended)}{self._left()}."
        return f"{text} {self.note}".rstrip()

    def _told_of(self, ended: list[int]) -> str:
        if ended:
            by_force = f", {len(self.pids_killed)} of them by force" if self.pids_killed else ""
            return f"{_count(ended)} ended ({_listed(ended)}){by_force}"
        if not self.unreported:
            return "no process was running"
        return f"which processes of trial {', '.join(map(str, self.unreported))} ended is not known"

    def _left(self) -> str:
        if self.pids_left:
            return f"; STILL THERE: {_listed(sorted(self.pids_left))}"
        if self.unreachable or self.pending:
            return ""
        return "; no process is left" if self.left_there else "; nothing is left"

    def __repr__(self) -> str:
        return str(self)


def _count(pids: list[int]) -> str:
    return "1 process" if len(pids) == 1 else f"{len(pids)} processes"


def _listed(pids: list[int], most: int = 12) -> str:
    more = f" and {len(pids) - most} more" if len(pids) > most else ""
    return f"pid{'s' if len(pids) > 1 else ''} {', '.join(map(str, pids[:most]))}{more}"
