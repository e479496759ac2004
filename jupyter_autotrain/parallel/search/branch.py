"""A node of the outer search: candidates with one mesh that are not told apart yet, and bounds that hold for all.

Recurrence: with m the common divisor of their microbatches and s the least stretch (microbatch times that a step lasts,
over microbatches) of any of them,

    bound(branch) = min over plans of  s m micro_s(plan, m) + step_s(plan)  <=  least step of each member

first without changes of layout between ops, then with them. Cutting the batch finer never helps: what is done once per
step does not shrink, kernels and messages get no faster per byte, and whatever splits a microbatch splits the batch. A
branch whose bound does not rule it out is halved, few microbatches from many; one candidate has its pipeline's own
bounds, and is then solved. Time: one reduction of a block per bound.

Source: branch and bound as in `whole`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from math import gcd, inf

from jupyter_autotrain.parallel.search.pipeline import Pipeline
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.task import Task

OTHER_PRICES = (1.0, 2.5, 0.4)  # of a byte, as multiples of what it seems to be worth


@dataclass(frozen=True)
class Known:
    """What the search has found so far: seconds to beat, and seconds that a byte is worth by the number of stages."""

    cutoff_s: float = inf
    worth: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Branch:
    """Candidates that differ in microbatches and schedule only.

    Attributes:
        task: What is searched.
        members: The candidates, fewest microbatches first, then least stretched.
        bound_s: None of them is faster.
        tried: Bounds tried so far.
    """

    task: Task
    members: tuple[Candidate, ...]
    bound_s: float
    tried: int = 0

    def __lt__(self, other: Branch) -> bool:
        return self.bound_s < other.bound_s

    @property
    def is_ready(self) -> bool:
        """Whether only a solver can say more."""
        return len(self.members) == 1 and self.tried == (len(_BOUNDS) if self.task.chain else 0)

    def parts(self, known: Known) -> list[Branch]:
        """This branch without the members that computing alone rules out; with one bound more, or in halves."""
        open_members = tuple(c for c in self.members if self.task.compute_bound_s(c) < known.cutoff_s)
        if len(open_members) < len(self.members):
            return [self._part(open_members)] if open_members else []
        if self.tried < self._worth_trying:
            refined_s = _BOUNDS[self.tried](self.pipeline, known)
            return [replace(self, bound_s=max(self.bound_s, refined_s), tried=self.tried + 1)]
        return [self._part(members) for members in self._halves()]

    @property
    def _worth_trying(self) -> int:
        """A bound for fewer microbatches than any member has says little, and costs as much as that of a half."""
        if len(self.members) == 1:
            return len(_BOUNDS)
        return len(_SHARED) if self.relaxed[0] == self.members[0].microbatches else 0

    @property
    def pipeline(self) -> Pipeline:
        """Priced for all members at once."""
        return self.task.pipeline(min(self.members, key=_stretch), self.relaxed[0])

    def _part(self, members: tuple[Candidate, ...]) -> Branch:
        computed_s = min(map(self.task.compute_bound_s, members))
        part = replace(self, members=members, bound_s=max(self.bound_s, computed_s))
        return part if part.relaxed == self.relaxed else replace(part, tried=0)

    def _halves(self) -> Iterator[tuple[Candidate, ...]]:
        counts = sorted({c.microbatches for c in self.members})
        middle = counts[len(counts) // 2]
        few = [c for c in self.members if c.microbatches < middle] or self.members[:1]
        yield tuple(few)
        yield tuple(self.members[len(few) :])

    @cached_property
    def relaxed(self) -> tuple[int, float]:
        """Microbatches and stretch of the bound that holds for all."""
        return gcd(*(c.microbatches for c in self.members)), min(map(_stretch, self.members))


def branches(task: Task, candidates: Iterable[Candidate]) -> list[Branch]:
    """One branch per mesh and number of stages; per candidate where there are no layers."""

    def together(c: Candidate) -> tuple[object, ...]:
        return (c.stages, c.mesh.shape) if task.chain else (c.stages, c.mesh.shape, c.microbatches)

    ranked = sorted(candidates, key=lambda c: (c.stages, c.mesh.shape, c.microbatches, _stretch(c)))
    groups = (tuple(group) for _, group in groupby(ranked, key=together))
    return [Branch(task, group, min(map(task.compute_bound_s, group))) for group in groups]


def _stretch(candidate: Candidate) -> float:
    return candidate.rounds / candidate.microbatches


def _bound_within_s(pipeline: Pipeline, known: Known) -> float:
    """At a price that was right for a like candidate, where there was one, else at its own; then at others near by."""
    stages, best_s = pipeline.candidate.stages, 0.0
    price = known.worth.get(stages, 0.0) or pipeline.byte_s
    for times in OTHER_PRICES if stages > 1 else ():
        bound_s = pipeline.bound_within_s(price * times)
        if bound_s > best_s:
            best_s, known.worth[stages] = bound_s, price * times
        if best_s >= known.cutoff_s or not price:
            break
    return best_s


# The cheapest first; those of several candidates at once come before those of one.
_SHARED: tuple[Callable[[Pipeline, Known], float], ...] = (
    lambda pipeline, _: pipeline.split_bound_s,
    lambda pipeline, _: pipeline.blocks_bound_s,
)
_BOUNDS = (
    *_SHARED,
    lambda pipeline, _: pipeline.bound_s,
    lambda pipeline, _: pipeline.staged_bound_s,
    _bound_within_s,
)
