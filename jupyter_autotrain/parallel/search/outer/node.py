"""A node of the outer search: candidates with one mesh and number of stages, and bounds that hold for all.

Variables: the members, candidates that differ in microbatches and schedule only.
Objective: a lower bound on the least step of each member.
Constraints: none beyond those of the members.
Recurrence: with m the common divisor of the members' microbatches and s the least stretch (microbatch times that a step
    lasts, over microbatches) of any of them,

    bound(node) = min over plans of  s m micro_s(plan, m) + step_s(plan)  <=  step(c) for each member c

    first without changes of layout between ops, then with them. It holds since cutting the batch finer never helps. A
    node that is not pruned is halved, few microbatches from many; one candidate has its pipeline's own bounds.
Complexity: one reduction of a block per bound.
Source: as `branch_and_bound`.
Oracle: tests/oracle/test_search_solvers.py::test_the_bounds_of_a_node_hold_for_each_of_its_candidates
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from math import gcd, inf

from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.request.request import Candidate
from jupyter_autotrain.parallel.search.stage.pipeline_problem import PipelineProblem

MULTIPLIER_FACTORS = (1.0, 2.5, 0.4)  # tried on the first multiplier


@dataclass(frozen=True, slots=True)
class Incumbent:
    """Seconds to beat, and the multiplier of a similar candidate (as many stages), 0 if none."""

    cutoff_s: float = inf
    multiplier: float = 0.0


@dataclass(frozen=True, slots=True)
class NodeBound:
    """Seconds that no member of a node is faster than, and the multiplier that they were reached with."""

    seconds: float
    multiplier: float = 0.0


@dataclass(frozen=True)
class SearchNode:
    """Candidates that differ in microbatches and schedule only.

    Attributes:
        context: What is searched.
        members: The candidates, fewest microbatches first, then least stretched.
        bound_s: None of them is faster.
        tried: Bounds tried so far.
        multiplier: That of the best bound within memory; 0 where none was tried.
    """

    context: SearchContext
    members: tuple[Candidate, ...]
    bound_s: float
    tried: int = 0
    multiplier: float = 0.0

    def __lt__(self, other: SearchNode) -> bool:
        return self.bound_s < other.bound_s

    @property
    def is_ready(self) -> bool:
        """True once all bounds were tried on its only candidate."""
        return len(self.members) == 1 and self.tried == (len(_BOUNDS) if self.context.chain else 0)

    @property
    def relaxed(self) -> tuple[int, float]:
        """Microbatches and stretch of the bound that holds for all."""
        return gcd(*(c.microbatches for c in self.members)), min(map(_stretch, self.members))

    @property
    def stages(self) -> int:
        """Pipeline stages of all members."""
        return self.members[0].stages

    def children(self, incumbent: Incumbent) -> list[SearchNode]:
        """Return this node without the members that computing alone rules out; with one bound more, or in halves."""
        open_members = tuple(c for c in self.members if self.context.compute_bound_s(c) < incumbent.cutoff_s)
        if len(open_members) < len(self.members):
            return [self._part(open_members)] if open_members else []
        if self.tried < self._worth_trying:
            bound = _BOUNDS[self.tried](self.pipeline(), incumbent)
            best_s = max(self.bound_s, bound.seconds)
            return [replace(self, bound_s=best_s, tried=self.tried + 1, multiplier=bound.multiplier)]
        return list(map(self._part, self._halves()))

    @property
    def _worth_trying(self) -> int:
        """A bound for fewer microbatches than any member has is weak, and costs as much as that of a half."""
        if len(self.members) == 1:
            return len(_BOUNDS)
        return len(_SHARED) if self.relaxed[0] == self.members[0].microbatches else 0

    def pipeline(self) -> PipelineProblem:
        """Return a relaxation of all members."""
        return self.context.pipeline(min(self.members, key=_stretch), self.relaxed[0])

    def _part(self, members: tuple[Candidate, ...]) -> SearchNode:
        computed_s = min(map(self.context.compute_bound_s, members))
        part = replace(self, members=members, bound_s=max(self.bound_s, computed_s), multiplier=0.0)
        return part if part.relaxed == self.relaxed else replace(part, tried=0)

    def _halves(self) -> Iterator[tuple[Candidate, ...]]:
        counts = sorted({c.microbatches for c in self.members})
        middle = counts[len(counts) // 2]
        few = [c for c in self.members if c.microbatches < middle] or self.members[:1]
        yield tuple(few)
        yield tuple(self.members[len(few) :])


def root_nodes(context: SearchContext, candidates: Iterable[Candidate]) -> list[SearchNode]:
    """One node per mesh and number of stages; per candidate where there are no layers."""

    def together(c: Candidate) -> tuple[object, ...]:
        return (c.stages, c.mesh.shape) if context.chain else (c.stages, c.mesh.shape, c.microbatches)

    ranked = sorted(candidates, key=lambda c: (c.stages, c.mesh.shape, c.microbatches, _stretch(c)))
    groups = (tuple(group) for _, group in groupby(ranked, key=together))
    return [SearchNode(context, group, min(map(context.compute_bound_s, group))) for group in groups]


def _stretch(candidate: Candidate) -> float:
    return candidate.rounds / candidate.microbatches


def _bound_within(pipeline: PipelineProblem, incumbent: Incumbent) -> NodeBound:
    """At a similar candidate's multiplier if there is one, else its own; then at `MULTIPLIER_FACTORS` times that."""
    best = NodeBound(0.0)
    first = incumbent.multiplier or pipeline.multiplier()
    for factor in MULTIPLIER_FACTORS if pipeline.candidate.stages > 1 else ():
        bound_s = pipeline.bound_within_s(first * factor)
        if bound_s > best.seconds:
            best = NodeBound(bound_s, first * factor)
        if best.seconds >= incumbent.cutoff_s or not first:
            break
    return best


# The cheapest first; those that hold for several candidates come before those of one.
_SHARED: tuple[Callable[[PipelineProblem, Incumbent], NodeBound], ...] = (
    lambda pipeline, _: NodeBound(pipeline.without_redistribution_bound_s()),
    lambda pipeline, _: NodeBound(pipeline.blocks_bound_s()),
)
_BOUNDS = (
    *_SHARED,
    lambda pipeline, _: NodeBound(pipeline.bound_s()),
    lambda pipeline, _: NodeBound(pipeline.partition_bound_s()),
    _bound_within,
)
