"""The outer search: branches of candidates, best bound first, until nothing left can win.

Recurrence: best = min over candidates c of best(c) (see `pipeline`). A branch holds all candidates of one mesh at
first, under the pure compute time spread over all devices; looked into, it gets a better bound, or falls into halves
(see `branch`), and one candidate with all its bounds is solved. What reaches the best plan so far is dropped; what is
never looked into when time runs out keeps its bound, so the answer's gap is always true. Meshes of one and two axes
come first, then those that refine the best of them, then all others, for a while. Time: one block reduction per bound,
and the stage problems of the candidates whose memory binds.

Source: best-first branch and bound (Lawler and Wood 1966).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from math import inf

from jupyter_autotrain.parallel.search.branch import Branch, Known, branches
from jupyter_autotrain.parallel.search.completion import completed
from jupyter_autotrain.parallel.search.dual import Infeasible
from jupyter_autotrain.parallel.search.outcome import Outcome
from jupyter_autotrain.parallel.search.plain import plain_outcome
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.task import Task

COARSE_AXES = 2
NEAR = 3  # numbers of stages whose best plan on few axes has its mesh refined before all others


@dataclass
class Search:
    """The state of a running search.

    Attributes:
        task: What is searched.
        best: The fastest outcome so far.
        least_bytes: Memory that would do where nothing fits.
        bound_s: No plan in what was looked into and left is faster.
        seen: All outcomes.
        complete: False when it was stopped.
        clock: Monotonic seconds.
        proof_s: How long to look into fine meshes that are not near the best.
        deadline: When that ends, by the clock.
        worth: Seconds that a byte was worth, by the number of stages.
    """

    task: Task
    best: Outcome | None = None
    least_bytes: float = inf
    bound_s: float = inf
    seen: list[Outcome] = field(default_factory=list)
    complete: bool = True
    clock: Callable[[], float] = time.monotonic
    proof_s: float = inf
    deadline: float = inf
    worth: dict[int, float] = field(default_factory=dict)

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
        """Look into branches until none can win: few axes first, then finer meshes of the best, then all others.

        What is never looked into keeps its bound, also when this is interrupted.

        Raises:
            OutOfTime: The time is spent.
        """
        left, queue = list(candidates), list[Branch]()
        try:
            for choose in (_coarse, self._near, self._others):
                chosen = choose(left)
                queue = branches(self.task, chosen)
                left = [c for c in left if c not in chosen]
                self._explore(queue)
        finally:
            self.bound_s = min([self.bound_s, *(b.bound_s for b in queue), *map(self.task.compute_bound_s, left)])

    def _explore(self, queue: list[Branch]) -> None:
        heapify(queue)
        while queue and queue[0].bound_s < self.cutoff_s and not (self.best and self.clock() > self.deadline):
            self.task.check()
            parts = self._parts(queue[0])
            if not parts:
                heappop(queue)
                continue
            for part in parts[1:]:
                heappush(queue, part)  # each promises no more than the branch did, which stays on top of them
            heapreplace(queue, parts[0])
        queue[:] = queue[:1]

    def _near(self, candidates: Iterable[Candidate]) -> frozenset[Candidate]:
        """Those whose mesh refines that of the best for some number of stages, all else alike."""
        by_stages: dict[int, Candidate] = {}
        for outcome in alternatives(self.seen, len(self.seen)):
            by_stages.setdefault(outcome.candidate.stages, outcome.candidate)
        best = list(by_stages.values())[:NEAR]
        return frozenset(c for c in candidates if any(c.refines(one) for one in best))

    def _others(self, candidates: Iterable[Candidate]) -> frozenset[Candidate]:
        """All, and the time for them begins."""
        self.deadline = self.clock() + self.proof_s
        return frozenset(candidates)

    def _parts(self, branch: Branch) -> list[Branch]:
        """What is left of a branch; nothing once it is solved."""
        if branch.is_ready:
            self.open(branch.members[0], branch.bound_s)
            return []
        parts = branch.parts(Known(self.cutoff_s, self.worth))
        return sorted(part for part in parts if part.bound_s < self.cutoff_s)

    def open(self, candidate: Candidate, bound_s: float = 0.0) -> None:
        """Solve one candidate of a known bound."""
        hint = self.worth.get(candidate.stages, 0.0)
        outcome, solved_s, least = solve_candidate(self.task, candidate, self.cutoff_s, hint)
        self.bound_s = min(self.bound_s, max(bound_s, solved_s))
        self.least_bytes = min(self.least_bytes, least)
        if outcome:
            if outcome.byte_s:
                self.worth[candidate.stages] = outcome.byte_s
            self.offer(outcome)


def _coarse(candidates: Iterable[Candidate]) -> frozenset[Candidate]:
    return frozenset(c for c in candidates if len(c.mesh.shape) <= COARSE_AXES)


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
        outcome = completed(pipeline, cutoff_s, hint)
    except Infeasible as full:
        return None, inf if full.proved else pipeline.bound_within_s(hint), full.least_bytes
    return outcome, max(pipeline.bound_within_s(outcome.byte_s), outcome.bound_s), inf


def alternatives(outcomes: Sequence[Outcome], count: int) -> Iterator[Outcome]:
    """The fastest outcomes, one per set of outer choices."""
    seen: set[Candidate] = set()
    for outcome in sorted(outcomes, key=lambda o: o.step_s):
        if outcome.candidate not in seen and len(seen) < count:
            seen.add(outcome.candidate)
            yield outcome
