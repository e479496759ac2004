"""Local search over meshes: one prime factor moves from axis to axis, each mesh solved exactly.

Variables: the mesh M of one stage's n devices.
Objective: minimise T(M), the least time on M without a memory limit (see `folding`).
Constraints: the product of the axes is n; the meshes that are open.
Recurrence: from M = (n/g, g), g devices of a chassis on the inner axis,

    M' = argmin of T over the neighbours of M   until none is better;   then again from (g, n/g)

    where a neighbour has one prime factor moved to the other axis. At the end an axis of the best is cut in two, the
    other axis keeping what each op chose. No bound comes out of it.
Complexity: a fixed number of reductions of one block (`WORK`), whatever the depth and the number of devices.
Source: Tofu (Wang et al. 2019), recursive partition by factors; double recursion (Wang et al., Euro-Par 2021), whose
    inner greedy pass is replaced by an exact one.
Oracle: tests/oracle/test_search_instant.py::test_placements_are_within_five_percent_of_exact
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import attrgetter

from jupyter_autotrain.parallel.arrays import Ints
from jupyter_autotrain.parallel.cost.model import Restriction
from jupyter_autotrain.parallel.graph.graph import Op
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.request.request import Candidate, mesh_of
from jupyter_autotrain.parallel.search.stage.pipeline_problem import PipelineProblem

CUTS = 2  # axes of two that are cut at the end
WORK = 155  # of one local search, in units of `Chain.work`


@dataclass(frozen=True)
class MeshSolution:
    """A mesh with its least time and the tables behind it."""

    shape: tuple[int, ...]
    seconds: float
    pipeline: PipelineProblem

    def splits(self) -> Mapping[int, tuple[int, ...]]:
        """Return what each op splits along each axis, as a row of its table; of equal ops, that of the first."""
        model = self.pipeline.models[0]
        full_chain = self.pipeline.full_chain()
        found = {}
        for piece in full_chain.solve(full_chain.weights(0.0)).point.assignment.pieces:
            for op, choice in piece.choices.items():
                if (twin := model.block_representative(op)) not in found:
                    found[twin] = tuple(model.table_rows(op)[choice.strategy].tolist())
        return found


def initial_meshes(context: SearchContext, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return of candidates that differ in their mesh only: where to start, best guess first."""
    devices = candidates[0].mesh.devices
    inner = math.gcd(devices, context.cluster.levels[0].size)
    guesses = [mesh_of((devices // inner, inner)).shape, mesh_of((inner, devices // inner)).shape]
    guessed = [c for shape in guesses for c in candidates if c.mesh.shape == shape]
    return guessed + sorted(candidates, key=lambda c: len(c.mesh.shape))


def best_mesh(context: SearchContext, candidates: Sequence[Candidate]) -> MeshSolution:
    """Return the best mesh of candidates that differ in their mesh only; of two axes at most where such are open."""
    fewest = max(2, min(len(c.mesh.shape) for c in candidates))
    shapes = frozenset(c.mesh.shape for c in candidates if len(c.mesh.shape) <= fewest)
    local_search = _LocalSearch(context, candidates[0], shapes)
    for start in initial_meshes(context, candidates):
        local_search.descend(start.mesh.shape)
    return min(local_search.solved.values(), key=attrgetter("seconds"))


def refine_mesh(
    context: SearchContext, coarse: MeshSolution, candidate: Candidate, shapes: Collection[tuple[int, ...]]
) -> MeshSolution | None:
    """Return the best of a few meshes that cut an axis of two, of those that are open; None where none is faster."""
    opened = (shape for shape in _cuts(coarse.shape) if shape in shapes)
    cut = [solve_mesh(context, candidate, shape, coarse) for shape in islice(opened, CUTS)]
    best = min(cut, key=attrgetter("seconds"), default=coarse)
    return best if best.seconds < coarse.seconds else None


@dataclass
class _LocalSearch:
    """Meshes solved so far; a fixed number of them, the fewer the larger their tables."""

    context: SearchContext
    template: Candidate
    open: frozenset[tuple[int, ...]]
    solved: dict[tuple[int, ...], MeshSolution] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Meshes that may still be solved."""
        assert self.context.chain is not None
        return max(1, WORK // self.context.chain.work - CUTS) - len(self.solved)

    def evaluate(self, shape: tuple[int, ...]) -> MeshSolution | None:
        """Solve a shape; None when it is not open, known already, or one too many."""
        if shape not in self.open or shape in self.solved or self.steps <= 0:
            return None
        return self.solved.setdefault(shape, solve_mesh(self.context, self.template, shape))

    def descend(self, start: tuple[int, ...]) -> None:
        """Steepest descent."""
        at = self.evaluate(start)
        while at:
            before, at = at, None
            for shape in _neighbours(before.shape):
                found = self.evaluate(shape)
                if found and found.seconds < (at or before).seconds:
                    at = found


def _neighbours(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield a prime factor moved from one axis of two to the other."""
    if len(shape) > 2:
        return
    outer, inner = (*shape, 1, 1)[:2]
    for factor in sorted(set(prime_factors(inner))):
        yield mesh_of((outer * factor, inner // factor)).shape
    for factor in sorted(set(prime_factors(outer))):
        yield mesh_of((outer // factor, inner * factor)).shape


def _cuts(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Each axis of two in two, near its root first."""
    if len(shape) > 2:
        return
    factors = list(map(prime_factors, shape))
    for away in range(max(map(len, factors), default=0)):
        for index, size in enumerate(shape):
            for place in {len(factors[index]) // 2 + away, len(factors[index]) // 2 - away}:
                left = math.prod(factors[index][place:]) if place > 0 else size
                if 1 < left < size:
                    yield *shape[:index], left, size // left, *shape[index + 1 :]


def solve_mesh(
    context: SearchContext, template: Candidate, shape: tuple[int, ...], coarse: MeshSolution | None = None
) -> MeshSolution:
    """Return the least time on a mesh; with a coarse solution, the axes that were not cut keep its choices."""
    candidate = replace(template, mesh=mesh_of(shape))
    narrowed = replace(context, restriction=_keep(coarse, shape)) if coarse and len(coarse.shape) > 1 else context
    pipeline = narrowed.pipeline(candidate)
    full_chain = pipeline.full_chain()
    return MeshSolution(shape, full_chain.path(full_chain.weights(0.0)).value, pipeline)


def _keep(coarse: MeshSolution, shape: tuple[int, ...]) -> Restriction:
    loops = coarse.splits()
    first = shape[0] == coarse.shape[0]  # else the first axis was cut
    kept_now, kept_before = (0, 0) if first else (2, 1)

    def restrict(op: Op, table: Ints) -> Ints:
        """Rows whose uncut axis splits what it split before."""
        chosen = loops.get(op.id)
        kept = table[table[:, kept_now] == chosen[kept_before]] if chosen else table
        return kept if len(kept) else table

    return restrict


def prime_factors(number: int) -> list[int]:
    """Prime factors, rising."""
    found = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found
