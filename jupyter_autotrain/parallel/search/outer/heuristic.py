"""The instant search: candidates in the order of their bounds, on the meshes of a local search.

Variables: the candidate, its mesh M(p) found by the local search for p stages (see `local_search`).
Objective: a small step time, without a proof; its plans are in the exact search's space, so no better than exact.
Constraints: memory, kept by the exact stage solver.
Recurrence: with bound(c) as in `node`,

    c* = the first c by rising bound(c) whose plan fits in memory

    and where memory slows that plan, descent: to more or fewer microbatches, then to other numbers of stages, until
    none is better or the work is used up; else an axis of its mesh is cut in two. With m microbatches too few by a
    factor f for the activations, so are all up to f m.
Complexity: one local search per number of stages tried, a few reductions of a block per plan; `WORK` in all.
Source: as `local_search` for the meshes, `branch_and_bound` for the order.
Oracle: tests/oracle/test_search_instant.py::test_whole_plans_are_within_five_percent_of_exact
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heapreplace
from math import inf

from jupyter_autotrain.parallel.cost.memory import Schedule
from jupyter_autotrain.parallel.search.factors.lagrangian import NoPlan
from jupyter_autotrain.parallel.search.outer.branch_and_bound import BranchAndBound, solve_candidate
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.outer.local_search import MeshSolution, best_mesh, finer, starts
from jupyter_autotrain.parallel.search.request.space import Candidate
from jupyter_autotrain.parallel.search.stage.outcome import Outcome
from jupyter_autotrain.parallel.search.stage.partition_solver import solve_partitions
from jupyter_autotrain.parallel.search.stage.pipeline import Pipeline

WORSE = 2  # worse steps after which a direction is given up
MULTIPLIERS = 2  # to try where memory binds
# How much slower than with memory to spare a plan may be: a pipeline's stages are never quite even.
FINE = 1.02
FINE_STAGED = 1.15
WORK = 2_000  # on plans against one that is slower, as of `Chain.work`

BOUND_LEVELS = 2  # bounds after that of the kernels alone

Kind = tuple[int, Schedule, int]  # stages, schedule, chunks


@dataclass(frozen=True, slots=True, order=True)
class _QueueEntry:
    """A configuration in the order of its bounds, then of its pieces; ties in the order of the candidates."""

    bound_s: float
    pieces: int
    index: int
    candidate: Candidate = field(compare=False)
    level: int = field(default=0, compare=False)


def heuristic_search(search: BranchAndBound, found: Sequence[Candidate], effort: float = 1.0) -> None:
    """Offer good plans among the candidates `found`; `effort` scales the work spent on better ones."""
    search.bound_s = min((search.context.compute_bound_s(c) for c in found), default=inf)
    if search.context.chain is None:
        _without_layers(search, found)
        return
    quick = _Heuristic.of(search, found, effort)
    first = quick.first()
    if first and quick.is_slow(first):
        quick.downhill(first)
    elif first:
        quick.cut(first)


def _without_layers(search: BranchAndBound, found: Sequence[Candidate]) -> None:
    for candidate in sorted(found, key=lambda c: (c.stages, c.microbatches, len(c.mesh.shape))):
        result = solve_candidate(search.context, candidate)
        search.least_bytes = min(search.least_bytes, result.least_bytes)
        if result.outcome:
            search.offer(result.outcome)
            return


@dataclass
class _Heuristic:
    """Plans tried so far.

    Attributes:
        search: Where they are offered.
        context: The search's, with few multipliers.
        open: By kind and microbatches, the candidates that differ in their mesh only.
        work: Op tables that may still be filled.
        meshes: The best mesh by the number of stages.
        needed: By kind, the least microbatches that may fit.
        tried: What became of a kind with so many microbatches.
    """

    search: BranchAndBound
    context: SearchContext
    open: dict[Kind, dict[int, list[Candidate]]]
    work: float
    meshes: dict[int, MeshSolution] = field(default_factory=dict)
    needed: dict[Kind, float] = field(default_factory=dict)
    tried: dict[tuple[Kind, int], Outcome | None] = field(default_factory=dict)

    @classmethod
    def of(cls, search: BranchAndBound, found: Sequence[Candidate], effort: float) -> _Heuristic:
        """Sort the candidates."""
        kinds: dict[Kind, dict[int, list[Candidate]]] = {}
        for c in found:
            kinds.setdefault((c.stages, c.schedule, c.chunks), {}).setdefault(c.microbatches, []).append(c)
        return cls(search, replace(search.context, most_multipliers=MULTIPLIERS), kinds, WORK * effort)

    def first(self) -> Outcome | None:
        """The first plan that fits, by rising bound."""
        plans = (self.plan(kind, microbatches) for kind, microbatches in self._promising())
        return next((outcome for outcome in plans if outcome), None)

    def is_slow(self, outcome: Outcome) -> bool:
        """Whether memory slows a plan."""
        fine = FINE if outcome.candidate.stages == 1 else FINE_STAGED
        return outcome.step_s > fine * self._pipeline(_kind(outcome.candidate), outcome.candidate.microbatches).bound_s

    def cut(self, outcome: Outcome) -> None:
        """Refine the mesh of a plan."""
        c = outcome.candidate
        shapes = {other.mesh.shape for other in self.open[_kind(c)][c.microbatches]}
        solved = finer(self.context, self.meshes[c.stages], c, shapes)
        if solved:
            self._complete(solved.pipeline)

    def downhill(self, outcome: Outcome) -> None:
        """From plan to better plan."""
        self._climb(outcome)
        for stages in sorted({kind[0] for kind in self.open} - {outcome.candidate.stages}):
            for kind in self._extremes(stages):
                best = self._best.candidate
                aim = best.microbatches * stages / best.stages * (2 if best.stages == 1 else 1)
                near = min(self.open[kind], key=lambda m: abs(math.log(m / aim)))
                if self._may_win(kind, near):
                    other = self.plan(kind, near)
                    if other and other is self._best:
                        self._climb(other)

    def _may_win(self, kind: Kind, microbatches: int) -> bool:
        """Whether a choice may beat the best by its bound on the mesh that the local search would start from."""
        start, *_ = starts(self.context, self.open[kind][microbatches])
        return self.context.pipeline(start).split_bound_s < self._best.step_s

    @property
    def _best(self) -> Outcome:
        assert self.search.best is not None
        return self.search.best

    def _extremes(self, stages: int) -> list[Kind]:
        """Of the schedules for so many stages, those with the fewest and the most chunks."""
        kinds = sorted((kind for kind in self.open if kind[0] == stages), key=lambda kind: kind[2])
        return kinds[:1] + kinds[1:][-1:]

    def _climb(self, outcome: Outcome) -> None:
        """To more microbatches, or to fewer, until that is worse twice, past those that do not divide well."""
        kind = _kind(outcome.candidate)
        counts = sorted(self.open[kind])
        start = counts.index(outcome.candidate.microbatches)
        for way in (counts[start + 1 :], counts[:start][::-1]):
            worse = 0
            for microbatches in way:
                if self._pipeline(kind, microbatches).bound_s >= self._best.step_s:
                    continue
                other = self.plan(kind, microbatches)
                worse = 0 if other and other is self._best else worse + 1
                if worse == WORSE:
                    break

    def plan(self, kind: Kind, microbatches: int) -> Outcome | None:
        """What a choice comes to, if it fits and may be better than the best; None as well when enough was tried."""
        key = (kind, microbatches)
        known = key in self.tried or microbatches < self.needed.get(kind, 0.0)
        if not known and (self.search.best is None or self.work > 0):
            pipeline = self._pipeline(kind, microbatches)
            before = pipeline.reductions
            self.tried[key] = self._complete(pipeline)
            self.work -= (pipeline.reductions - before) * pipeline.chain.work
        return self.tried.get(key)

    def _complete(self, pipeline: Pipeline) -> Outcome | None:
        search = self.search
        c = pipeline.candidate
        if pipeline.bound_s >= search.cutoff_s:
            return None
        try:
            multiplier = search.multipliers.get(c.stages) or max(search.multipliers.values(), default=0.0)
            outcome = solve_partitions(pipeline, search.cutoff_s, multiplier, only_even=search.best is not None)
        except NoPlan as found:
            if found.least_bytes < inf:
                search.least_bytes = min(search.least_bytes, found.least_bytes)
                self.needed[_kind(c)] = c.microbatches * found.least_bytes / max(self.context.limits(c))
            return None
        search.multipliers[c.stages] = outcome.multiplier or search.multipliers.get(c.stages, 0.0)
        search.offer(outcome)
        return outcome

    def _pipeline(self, kind: Kind, microbatches: int) -> Pipeline:
        """On the best mesh for as many stages."""
        some = self.open[kind][microbatches]
        stages = kind[0]
        if stages not in self.meshes:
            self.meshes[stages] = best_mesh(self.context, some)
        shape = self.meshes[stages].shape
        return self.context.pipeline(next(c for c in some if c.mesh.shape == shape))

    def _promising(self) -> Iterator[tuple[Kind, int]]:
        """Choices by rising bound, refined only as far as the order needs it; then fewest pieces."""
        queue = [self._entry(index, c) for index, c in enumerate(self._mesh_candidates())]
        heapify(queue)
        while queue:
            entry = queue[0]
            if entry.level < BOUND_LEVELS and len(queue) > 1:
                heapreplace(queue, self._refined(entry))
            else:
                heappop(queue)
                yield _kind(entry.candidate), entry.candidate.microbatches

    def _mesh_candidates(self) -> Iterator[Candidate]:
        """One candidate per configuration and number of microbatches, on the mesh that the local search starts from."""
        for by_microbatches in self.open.values():
            for some in by_microbatches.values():
                yield starts(self.context, some)[0]

    def _entry(self, index: int, candidate: Candidate) -> _QueueEntry:
        pieces = candidate.stages * candidate.microbatches
        return _QueueEntry(self.context.compute_bound_s(candidate), pieces, index, candidate)

    def _refined(self, entry: _QueueEntry) -> _QueueEntry:
        """The entry under one bound more: without redistribution, for one microbatch at first."""
        counted = 1 if entry.level == 0 else entry.candidate.microbatches
        bound_s = self.context.pipeline(entry.candidate, counted).split_bound_s
        return replace(entry, bound_s=max(entry.bound_s, bound_s), level=entry.level + 1)


def _kind(candidate: Candidate) -> Kind:
    return candidate.stages, candidate.schedule, candidate.chunks
