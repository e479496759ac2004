"""The outer search: branches of candidates, best bound first, until nothing left can win.

Recurrence: best = min over candidates c of best(c) (see `pipeline`). A branch holds all candidates of one mesh at
first, under the pure compute time spread over all devices; looked into, it gets a better bound, or falls into halves
(see `branch`), and one candidate with all its bounds is solved. What reaches the best plan so far is dropped; what is
never looked into when time runs out keeps its bound, so the answer's gap is always true. Time: one block reduction per
bound, and the stage problems of the candidates whose memory binds.

Source: best-first branch and bound (Lawler and Wood 1966).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf

from jupyter_autotrain.parallel.search.branch import Branch, branches
from jupyter_autotrain.parallel.search.dual import Infeasible
from jupyter_autotrain.parallel.search.outcome import Outcome
from jupyter_autotrain.parallel.search.plain import plain_outcome
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.task import Task


@dataclass
class Search:
    """The state of a running search."""

    task: Task
    best: Outcome | None = None
    least_bytes: float = inf
    bound_s: float = inf
    seen: list[Outcome] = field(default_factory=list)
    complete: bool = True
    byte_s: float = 0.0

    @property
    def cutoff_s(self) -> float:
        """Seconds to beat."""
        return self.best.step_s if self.best else inf

    def offer(self, outcome: Outcome) -> None:
        """Take a plan that fits."""
        self.seen.append(outcome)
        if outcome.step_s < self.cutoff_s:
            self.best = outcome

    def run(self, candidates: Iterable[Candidate]) -> None:
        """Look into branches until none can win; what is never looked into keeps its bound, also when interrupted.

        Raises:
            OutOfTime: The time is spent.
        """
        fresh = count()
        queue = [(branch.bound_s, next(fresh), branch) for branch in branches(self.task, candidates)]
        heapify(queue)
        open_s = inf
        try:
            while queue and queue[0][0] < self.cutoff_s:
                self.task.check()
                open_s, _, branch = queue[0]
                parts = self._parts(branch)
                heappop(queue)
                for part in parts:
                    heappush(queue, (part.bound_s, next(fresh), part))
                open_s = inf
        finally:
            self.bound_s = min(self.bound_s, open_s, queue[0][0] if queue else inf)

    def _parts(self, branch: Branch) -> list[Branch]:
        """What is left of a branch; nothing once it is solved."""
        if branch.is_ready:
            self.open(branch.members[0], branch.bound_s)
            return []
        try:
            return [part for part in branch.parts(self.cutoff_s) if part.bound_s < self.cutoff_s]
        except Infeasible as full:
            self.least_bytes = min(self.least_bytes, full.least_bytes)
            return []

    def open(self, candidate: Candidate, bound_s: float = 0.0) -> None:
        """Solve one candidate of a known bound."""
        outcome, solved_s, least = solve_candidate(self.task, candidate, self.cutoff_s, self.byte_s)
        self.bound_s = min(self.bound_s, max(bound_s, solved_s))
        self.least_bytes = min(self.least_bytes, least)
        if outcome:
            self.byte_s = outcome.byte_s or self.byte_s
            self.offer(outcome)


def solve_candidate(
    task: Task, candidate: Candidate, cutoff_s: float = inf, hint: float = 0.0
) -> tuple[Outcome | None, float, float]:
    """(outcome when one fits and may win, bound, least bytes when nothing fits)."""
    model, limits = task.models(candidate)[0], task.limits(candidate)
    if task.restrict and any(not len(model.table_rows(op.id)) for op in task.graph.ops):
        return None, inf, inf
    if task.chain is None:
        return plain_outcome(model, candidate, limits[0], task.check)
    pipeline = task.pipeline(candidate)
    try:
        outcome = pipeline.best(limits, cutoff_s, hint)
    except Infeasible as full:
        proved = candidate.stages == 1 or full.least_bytes < inf
        return None, inf if proved else pipeline.staged_bound_s, full.least_bytes
    return outcome, max(pipeline.staged_bound_s, outcome.bound_s), inf


def alternatives(outcomes: Sequence[Outcome], count: int) -> Iterator[Outcome]:
    """The fastest outcomes, one per set of outer choices."""
    seen: set[Candidate] = set()
    for outcome in sorted(outcomes, key=lambda o: o.step_s):
        if outcome.candidate not in seen and len(seen) < count:
            seen.add(outcome.candidate)
            yield outcome
