"""The heuristic search (`RECURSIVE_PROGRAMMING`): candidates by rising bound, on the meshes of a local search.

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
from typing import NamedTuple

from jupyter_autotrain.parallel.cost.memory import Schedule
from jupyter_autotrain.parallel.search.factors.lagrangian import NoPlan
from jupyter_autotrain.parallel.search.outer.branch_and_bound import BranchAndBound, solve_candidate
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.outer.local_search import MeshSolution, best_mesh, initial_meshes, refine_mesh
from jupyter_autotrain.parallel.search.request.request import Candidate
from jupyter_autotrain.parallel.search.stage.outcome import Outcome
from jupyter_autotrain.parallel.search.stage.partition_solver import solve_partitions
from jupyter_autotrain.parallel.search.stage.pipeline_problem import PipelineProblem

WORSE = 2  # worse steps after which a direction is given up
MULTIPLIERS = 2  # to try where memory binds
FINE = 1.02  # how much slower than with memory to spare a plan may be
FINE_STAGED = 1.15  # a pipeline's stages are never quite even
WORK = 2_000  # on plans against one that is slower, as of `Chain.work`

BOUND_LEVELS = 2  # bounds after that of the kernels alone


class PipelineConfig(NamedTuple):
    """The way in which layers are pipelined."""

    stages: int
    schedule: Schedule
    chunks: int


@dataclass(frozen=True, slots=True, order=True)
class _QueueEntry:
    """A configuration in the order of its bounds, then of its pieces; ties in the order of the candidates."""

    bound_s: float
    pieces: int
    index: int
    candidate: Candidate = field(compare=False)
    level: int = field(default=0, compare=False)


def heuristic_search(search: BranchAndBound, candidates: Sequence[Candidate], effort: float = 1.0) -> None:
    """Offer good plans among the candidates; `effort` scales the work spent on better ones."""
    search.bound_s = min(map(search.context.compute_bound_s, candidates), default=inf)
    if search.context.chain is None:
        _without_layers(search, candidates)
        return
    heuristic = _Heuristic.of(search, candidates, effort)
    first = heuristic.first_feasible()
    if first and heuristic.is_slow(first):
        heuristic.descend(first)
    elif first:
        heuristic.refine_mesh(first)


def _without_layers(search: BranchAndBound, candidates: Sequence[Candidate]) -> None:
    for candidate in sorted(candidates, key=lambda c: (c.stages, c.microbatches, len(c.mesh.shape))):
        result = solve_candidate(search.context, candidate)
        search.least_bytes = min(search.least_bytes, result.least_bytes)
        if result.outcome:
            search.update_incumbent(result.outcome)
            return


@dataclass
class _Heuristic:
    """Plans tried so far.

    Attributes:
        search: Where they are offered.
        context: The search's, with few multipliers.
        candidates_by_config: By configuration and microbatches, the candidates that differ in their mesh only.
        work: Op tables that may still be filled.
        meshes: The best mesh by the number of stages.
        least_microbatches: By configuration, the least microbatches that may fit.
        results: The outcome of a configuration with so many microbatches.
    """

    search: BranchAndBound
    context: SearchContext
    candidates_by_config: dict[PipelineConfig, dict[int, list[Candidate]]]
    work: float
    meshes: dict[int, MeshSolution] = field(default_factory=dict)
    least_microbatches: dict[PipelineConfig, float] = field(default_factory=dict)
    results: dict[tuple[PipelineConfig, int], Outcome | None] = field(default_factory=dict)

    @classmethod
    def of(cls, search: BranchAndBound, candidates: Sequence[Candidate], effort: float) -> _Heuristic:
        """Sort the candidates."""
        configs: dict[PipelineConfig, dict[int, list[Candidate]]] = {}
        for c in candidates:
            configs.setdefault(_config_of(c), {}).setdefault(c.microbatches, []).append(c)
        return cls(search, replace(search.context, most_multipliers=MULTIPLIERS), configs, WORK * effort)

    def first_feasible(self) -> Outcome | None:
        """Return the first plan that fits, by rising bound."""
        plans = (self.solve(config, microbatches) for config, microbatches in self._by_bound())
        return next(filter(None, plans), None)

    def is_slow(self, outcome: Outcome) -> bool:
        """Return whether memory slows a plan."""
        fine = FINE if outcome.candidate.stages == 1 else FINE_STAGED
        pipeline = self._pipeline(_config_of(outcome.candidate), outcome.candidate.microbatches)
        return outcome.step_s > fine * pipeline.bound_s()

    def refine_mesh(self, outcome: Outcome) -> None:
        """Refine the mesh of a plan."""
        c = outcome.candidate
        shapes = {other.mesh.shape for other in self.candidates_by_config[_config_of(c)][c.microbatches]}
        solved = refine_mesh(self.context, self.meshes[c.stages], c, shapes)
        if solved:
            self._complete(solved.pipeline)

    def descend(self, outcome: Outcome) -> None:
        """Local descent from a plan."""
        self._descend_microbatches(outcome)
        for stages in sorted({config.stages for config in self.candidates_by_config} - {outcome.candidate.stages}):
            for config in self._extreme_chunks(stages):
                best = self._best.candidate
                aim = best.microbatches * stages / best.stages * (2 if best.stages == 1 else 1)
                near = min(self.candidates_by_config[config], key=lambda m: abs(math.log(m / aim)))
                if self._may_win(config, near):
                    other = self.solve(config, near)
                    if other and other is self._best:
                        self._descend_microbatches(other)

    def _may_win(self, config: PipelineConfig, microbatches: int) -> bool:
        """Get whether a configuration may beat the best by its bound on the mesh that local search would start from."""
        start, *_ = initial_meshes(self.context, self.candidates_by_config[config][microbatches])
        return self.context.pipeline(start).without_redistribution_bound_s() < self._best.step_s

    @property
    def _best(self) -> Outcome:
        assert self.search.best is not None
        return self.search.best

    def _extreme_chunks(self, stages: int) -> list[PipelineConfig]:
        """Return of the schedules for so many stages, those with the fewest and the most chunks."""
        configs = [config for config in self.candidates_by_config if config.stages == stages]
        configs.sort(key=lambda config: config.chunks)
        return configs[:1] + configs[1:][-1:]

    def _descend_microbatches(self, outcome: Outcome) -> None:
        """To more microbatches, or to fewer, until that is worse twice, skipping counts whose bound cannot win."""
        config = _config_of(outcome.candidate)
        counts = sorted(self.candidates_by_config[config])
        start = counts.index(outcome.candidate.microbatches)
        for way in (counts[start + 1 :], counts[:start][::-1]):
            worse = 0
            for microbatches in way:
                if self._pipeline(config, microbatches).bound_s() >= self._best.step_s:
                    continue
                other = self.solve(config, microbatches)
                worse = 0 if other and other is self._best else worse + 1
                if worse == WORSE:
                    break

    def solve(self, config: PipelineConfig, microbatches: int) -> Outcome | None:
        """Get the outcome of a configuration, if it fits and may beat the best; None as well when the work is spent."""
        key = (config, microbatches)
        known = key in self.results or microbatches < self.least_microbatches.get(config, 0.0)
        if not known and (self.search.best is None or self.work > 0):
            pipeline = self._pipeline(config, microbatches)
            before = pipeline.reductions
            self.results[key] = self._complete(pipeline)
            self.work -= (pipeline.reductions - before) * pipeline.chain.work
        return self.results.get(key)

    def _complete(self, pipeline: PipelineProblem) -> Outcome | None:
        search = self.search
        c = pipeline.candidate
        if pipeline.bound_s() >= search.cutoff_s:
            return None
        try:
            multiplier = search.multipliers.get(c.stages) or max(search.multipliers.values(), default=0.0)
            outcome = solve_partitions(pipeline, search.cutoff_s, multiplier, only_even=search.best is not None)
        except NoPlan as failure:
            if failure.least_bytes < inf:
                search.least_bytes = min(search.least_bytes, failure.least_bytes)
                factor = failure.least_bytes / max(self.context.limits(c))
                self.least_microbatches[_config_of(c)] = c.microbatches * factor
            return None
        search.multipliers[c.stages] = outcome.multiplier or search.multipliers.get(c.stages, 0.0)
        search.update_incumbent(outcome)
        return outcome

    def _pipeline(self, config: PipelineConfig, microbatches: int) -> PipelineProblem:
        """On the best mesh for as many stages."""
        mesh_candidates = self.candidates_by_config[config][microbatches]
        if config.stages not in self.meshes:
            self.meshes[config.stages] = best_mesh(self.context, mesh_candidates)
        shape = self.meshes[config.stages].shape
        return self.context.pipeline(next(c for c in mesh_candidates if c.mesh.shape == shape))

    def _by_bound(self) -> Iterator[tuple[PipelineConfig, int]]:
        """Yield configurations by rising bound, refined only as far as the order needs it; then fewest pieces."""
        queue = [self._entry(index, c) for index, c in enumerate(self._mesh_candidates())]
        heapify(queue)
        while queue:
            entry = queue[0]
            if entry.level < BOUND_LEVELS and len(queue) > 1:
                heapreplace(queue, self._refined(entry))
            else:
                heappop(queue)
                yield _config_of(entry.candidate), entry.candidate.microbatches

    def _mesh_candidates(self) -> Iterator[Candidate]:
        """One candidate per configuration and number of microbatches, on the mesh that local search starts from."""
        for by_microbatches in self.candidates_by_config.values():
            for mesh_candidates in by_microbatches.values():
                yield initial_meshes(self.context, mesh_candidates)[0]

    def _entry(self, index: int, candidate: Candidate) -> _QueueEntry:
        pieces = candidate.stages * candidate.microbatches
        return _QueueEntry(self.context.compute_bound_s(candidate), pieces, index, candidate)

    def _refined(self, entry: _QueueEntry) -> _QueueEntry:
        """Return the entry under one bound more: without redistribution, for one microbatch at first."""
        counted = 1 if entry.level == 0 else entry.candidate.microbatches
        bound_s = self.context.pipeline(entry.candidate, counted).without_redistribution_bound_s()
        return replace(entry, bound_s=max(entry.bound_s, bound_s), level=entry.level + 1)


def _config_of(candidate: Candidate) -> PipelineConfig:
    return PipelineConfig(candidate.stages, candidate.schedule, candidate.chunks)
