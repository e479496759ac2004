"""The outer search: best-first branch and bound over candidates.

Variables: the candidate c (stages, mesh, microbatches, schedule, chunks).
Objective: minimise step(c), the least of its plans, ties of compared plans by memory (see `problem.rank`).
Constraints: the mesh and the stages use all devices; pins and the search space.
Recurrence: best = min over c of step(c). A node holds all candidates of one mesh at first, under the compute time of
    the kernels alone; the node with the least bound gets a better bound or falls into halves (see `node`), one
    candidate with all its bounds is solved, and what does not beat the best plan is pruned. What is never expanded
    keeps its bound, so the gap is true whenever the search ends. Meshes of one and two axes come first, then those
    that refine the best of them, then all others for `proof_s` seconds.
Complexity: one block reduction per bound, and the stage problems of the candidates whose memory binds.
Source: best-first branch and bound (Lawler and Wood 1966).
Oracle: tests/oracle/test_search_solvers.py::test_branch_and_bound_equals_solving_every_candidate
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from math import inf
from operator import attrgetter
from typing import TypeAlias

from jupyter_autotrain.parallel.search.factors.lagrangian import NoPlan, Unknown
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.outer.node import Incumbent, SearchNode, root_nodes
from jupyter_autotrain.parallel.search.request.request import Candidate
from jupyter_autotrain.parallel.search.stage.outcome import CandidateResult, Outcome
from jupyter_autotrain.parallel.search.stage.partition_solver import single_stage_outcome, solve_partitions
from jupyter_autotrain.parallel.search.stage.unrolled_solver import solve_unrolled

Part: TypeAlias = tuple[SearchContext, Sequence[Candidate]]
COARSE_AXES = 2
NEAR = 3  # numbers of stages whose best plan on few axes has its mesh refined before all others


@dataclass
class BranchAndBound:
    """The state of a running search.

    Attributes:
        context: What is searched.
        best: The fastest outcome so far.
        least_bytes: Memory that would do where nothing fits.
        bound_s: No plan that was expanded or left open is faster.
        outcomes: All that were found.
        complete: False when it was stopped.
        clock: Monotonic seconds.
        proof_s: Seconds for fine meshes that do not refine the best ones.
        deadline: When that ends, by the clock.
        multipliers: Lagrange multipliers of memory [s/byte], by the number of stages.
        accepts: Whether a plan may be the answer.
    """

    context: SearchContext
    best: Outcome | None = None
    least_bytes: float = inf
    bound_s: float = inf
    outcomes: list[Outcome] = field(default_factory=list)
    complete: bool = True
    clock: Callable[[], float] = time.monotonic
    proof_s: float = inf
    deadline: float = inf
    multipliers: dict[int, float] = field(default_factory=dict)
    accepts: Callable[[Outcome], bool] = lambda _: True

    @property
    def cutoff_s(self) -> float:
        """Seconds to beat."""
        return self.best.step_s if self.best else inf

    def update_incumbent(self, outcome: Outcome) -> bool:
        """Record a plan that fits, and return whether it may be the answer; the incumbent is the first by rank."""
        if not self.accepts(outcome):
            return False
        self.outcomes.append(outcome)
        if self.best is None or outcome.rank < self.best.rank:
            self.best = outcome
            self.context.progress.best_s = min(self.context.progress.best_s, outcome.step_s)
        return True

    def run(self, candidates: Iterable[Candidate]) -> None:
        """Search the candidates of the whole context; see `run_parts`."""
        self.run_parts([(self.context, list(candidates))])

    def run_parts(self, parts: Sequence[Part]) -> None:
        """Expand nodes until none can win: few axes first, then finer meshes of the best, then all others.

        What is never expanded keeps its bound, also when this is interrupted.

        Args:
            parts: Contexts, each narrowed or whole, with candidates to search in it.

        Raises:
            OutOfTime: The time is spent.
        """
        self.bound_s = inf
        remaining = list(dict.fromkeys(c for _, candidates in parts for c in candidates))
        queue = list[SearchNode]()
        phases = (
            ("meshes of few axes", _few_axes),
            ("finer meshes of the best", self._refinements),
            ("all other meshes", self._remaining),
        )
        try:
            for phase, select in phases:
                self.context.progress.enter(phase)
                selected = select(remaining)
                queue = list(_nodes(parts, selected))
                remaining = [c for c in remaining if c not in selected]
                heapify(queue)
                while node := self._next_ready(queue):
                    multiplier = self.multipliers.get(node.stages, 0.0)
                    self._record(node, solve_candidate(node.context, node.members[0], self.cutoff_s, multiplier))
                    heappop(queue)
        finally:
            open_bounds_s = [node.bound_s for node in queue]
            self.bound_s = min([self.bound_s, *open_bounds_s, *map(self.context.compute_bound_s, remaining)])

    def _next_ready(self, queue: list[SearchNode]) -> SearchNode | None:
        """Branch until one candidate with all its bounds is on top; None when no node can win.

        A node leaves the queue once it is solved or replaced by its children, so that an interrupt loses no bound.
        """
        while queue and queue[0].bound_s < self.cutoff_s and not self._is_proof_over():
            self.context.progress.bound_s = queue[0].bound_s
            self.context.progress.check()
            if queue[0].is_ready:
                return queue[0]
            self._branch(queue)
        return None

    def _is_proof_over(self) -> bool:
        return self.best is not None and self.clock() > self.deadline

    def _branch(self, queue: list[SearchNode]) -> None:
        """Replace the node with the least bound by its children."""
        children = self._children(queue[0])
        if not children:
            heappop(queue)
            return
        for child in children[1:]:
            heappush(queue, child)  # no child has a lower bound than its parent, which stays on top meanwhile
        heapreplace(queue, children[0])

    def _refinements(self, candidates: Sequence[Candidate]) -> frozenset[Candidate]:
        """Return those whose mesh refines that of the best for some number of stages, all else equal."""
        by_stages: dict[int, Candidate] = {}
        for outcome in alternatives(self.outcomes, len(self.outcomes)):
            by_stages.setdefault(outcome.candidate.stages, outcome.candidate)
        found: set[Candidate] = set()
        for best in list(by_stages.values())[:NEAR]:
            found.update(c for c in candidates if c.refines(best))
        return frozenset(found)

    def _remaining(self, candidates: Iterable[Candidate]) -> frozenset[Candidate]:
        """All, and the time for them begins."""
        self.deadline = self.clock() + self.proof_s
        return frozenset(candidates)

    def _children(self, node: SearchNode) -> list[SearchNode]:
        """Return what is left of a node under one bound more, or of its halves, best bound first."""
        children = node.children(Incumbent(self.cutoff_s, self.multipliers.get(node.stages, 0.0)))
        for child in children:
            if child.multiplier:
                self.multipliers[child.stages] = child.multiplier
        return sorted(child for child in children if child.bound_s < self.cutoff_s)

    def _record(self, node: SearchNode, result: CandidateResult) -> None:
        """Record the result of a node's only candidate."""
        self.bound_s = min(self.bound_s, max(node.bound_s, result.bound_s))
        self.least_bytes = min(self.least_bytes, result.least_bytes)
        if result.outcome is None:
            return
        if result.outcome.multiplier:
            self.multipliers[node.stages] = result.outcome.multiplier
        self.update_incumbent(result.outcome)


def _nodes(parts: Sequence[Part], selected: frozenset[Candidate]) -> Iterator[SearchNode]:
    for context, candidates in parts:
        yield from root_nodes(context, [c for c in candidates if c in selected])


def _few_axes(candidates: Iterable[Candidate]) -> frozenset[Candidate]:
    return frozenset(c for c in candidates if len(c.mesh.shape) <= COARSE_AXES)


def solve_candidate(
    context: SearchContext, candidate: Candidate, cutoff_s: float = inf, multiplier: float = 0.0
) -> CandidateResult:
    """Return the best plan of a candidate, with a bound; `multiplier` is tried first where memory binds."""
    model = context.models(candidate)[0]
    limits = context.limits(candidate)
    if not model.splits_every_op():
        return CandidateResult(None, inf)
    if context.chain is None:
        return solve_unrolled(model, candidate, limits[0], context.progress.check)
    pipeline = context.pipeline(candidate)
    try:
        if candidate.stages > 1:
            outcome = solve_partitions(pipeline, cutoff_s, multiplier)
        else:
            outcome = single_stage_outcome(pipeline, pipeline.full_chain().minimise(limits[0], cutoff_s, multiplier))
    except Unknown as found:
        return CandidateResult(None, pipeline.bound_within_s(multiplier), found.least_bytes)
    except NoPlan as found:
        return CandidateResult(None, inf, found.least_bytes)
    return CandidateResult(outcome, max(pipeline.bound_within_s(outcome.multiplier), outcome.bound_s))


def alternatives(outcomes: Sequence[Outcome], count: int) -> Iterator[Outcome]:
    """Yield the fastest outcomes, one per set of outer choices."""
    listed: set[Candidate] = set()
    for outcome in sorted(outcomes, key=attrgetter("rank")):
        if outcome.candidate not in listed and len(listed) < count:
            listed.add(outcome.candidate)
            yield outcome
