"""The instant search: devices are handed out factor by factor, and every hand-out is solved exactly on what is left.

Recurrence: with prime factors f_1, f_2 ... of the devices, innermost links first,

    M_0 = (n);   M_1 = (n/g, g), the factors g of a chassis moved to an inner axis;   M = the better of the two
    M_2 = M with its outer axis cut at a prime factor, the inner axis keeping what each op chose

Each mesh is solved by one elimination whose values per op are few: one or two free axes, never three. Time: a fixed
number of eliminations (at most log2 of a chassis, and one per cut), whatever the depth; any device count, prime
factors instead of halves. Repair: the last mesh's plan is completed under the memory limit by the exact stage solver;
when it does not fit, microbatches and stages are doubled until one does. The answer is a plan of the exact search's
space, so it is never better than exact; its bound is the arithmetic alone.

Source: Tofu (Wang et al. 2019), recursive partition by factors; double recursion (Wang et al., Euro-Par 2021), whose
inner greedy pass is replaced by an exact one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from jupyter_autotrain.parallel.cost.layout import Ints
from jupyter_autotrain.parallel.cost.model import Restriction
from jupyter_autotrain.parallel.graph.graph import Op
from jupyter_autotrain.parallel.search.dual import Infeasible
from jupyter_autotrain.parallel.search.pipeline import Outcome, Pipeline
from jupyter_autotrain.parallel.search.space import Candidate, mesh_of
from jupyter_autotrain.parallel.search.whole import Search, Task, solve_candidate

CUTS = 2  # axes of two that are cut at the end
WORK, WORK_PER_MESH = 110, 6  # op tables that a search may fill, and how many a mesh costs beside its own


@dataclass(frozen=True)
class _Solved:
    """A mesh with its least time and the tables behind it."""

    shape: tuple[int, ...]
    seconds: float
    pipeline: Pipeline

    @cached_property
    def loops(self) -> Mapping[int, tuple[int, ...]]:
        """What each op splits along each axis; of equal ops, the first."""
        model, whole, found = self.pipeline.models[0], self.pipeline.whole, {}
        for piece in whole.solve(whole.price(0.0)).point.what.pieces:
            for op, choice in piece.choices.items():
                if (twin := model.twin(op)) not in found:
                    found[twin] = tuple(model.table_rows(op)[choice.strategy].tolist())
        return found


def recursive(search: Search, found: Sequence[Candidate]) -> None:
    """Offer one good plan; `found` says which outer choices are open."""
    task = search.task
    search.bound_s = min((task.compute_bound_s(c) for c in found), default=inf)
    for stages, microbatches in _outer(found):
        some = [c for c in found if (c.stages, c.microbatches) == (stages, microbatches)]
        if task.chain is None:
            outcome, _, least = solve_candidate(task, min(some, key=lambda c: len(c.mesh.shape)))
        else:
            outcome, least = _completed(task, _best_mesh(task, some).pipeline)
        search.least_bytes = min(search.least_bytes, least)
        if outcome:
            search.offer(outcome)
            return


def _completed(task: Task, pipeline: Pipeline) -> tuple[Outcome | None, float]:
    try:
        return pipeline.best(task.limits(pipeline.candidate)), inf
    except Infeasible as full:
        return None, full.least_bytes


def _outer(found: Sequence[Candidate]) -> Iterator[tuple[int, int]]:
    """Stages and microbatches: fewest first, those with the least bubble before others."""
    keys = dict.fromkeys((c.stages, c.microbatches) for c in found)
    yield from sorted(keys, key=lambda key: (key[0] > 1 and key[1] < 2 * key[0], key[0] * key[1], key[0]))


def _best_mesh(task: Task, some: Sequence[Candidate]) -> _Solved:
    """Hand out the devices; only shapes that are open to the search are looked at."""
    walk = _Walk(task, some[0], frozenset(c.mesh.shape for c in some))
    devices = some[0].mesh.devices
    inner = math.gcd(devices, task.cluster.levels[0].size)
    for start in ((devices // inner, inner), (inner, devices // inner), *sorted(walk.open, key=len)):
        if walk.steps > CUTS:
            walk.downhill(_above_one(*start))
    for coarse in walk.ranked():
        for shape in _cuts(coarse.shape):
            walk.to(shape, coarse)
    return walk.ranked()[0]


@dataclass
class _Walk:
    """Meshes solved so far; a fixed number of them, the fewer the larger their tables."""

    task: Task
    template: Candidate
    open: frozenset[tuple[int, ...]]
    solved: dict[tuple[int, ...], _Solved] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Meshes that may still be solved."""
        chain = self.task.chain
        assert chain is not None
        tables = len(chain.head) + chain.run.length + len(chain.tail)
        return max(CUTS + 1, WORK // (tables + WORK_PER_MESH)) - len(self.solved)

    def ranked(self) -> list[_Solved]:
        """What was solved, fastest first."""
        return sorted(self.solved.values(), key=lambda s: s.seconds)

    def to(self, shape: tuple[int, ...], coarse: _Solved | None = None) -> _Solved | None:
        """Solve a shape; None when it is not open, known already, or one too many."""
        if shape not in self.open or shape in self.solved or self.steps <= 0:
            return None
        return self.solved.setdefault(shape, _solve(self.task, self.template, shape, coarse))

    def downhill(self, start: tuple[int, ...]) -> None:
        """From neighbour to better neighbour, leaving steps for the cuts."""
        at = self.to(start)
        while at:
            before, at = at, None
            for shape in _neighbours(before.shape):
                found = self.to(shape) if self.steps > CUTS else None
                if found and found.seconds < (at or before).seconds:
                    at = found


def _neighbours(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """A prime factor moved from one axis of two to the other."""
    if len(shape) > 2:
        return
    outer, inner = (*shape, 1, 1)[:2]
    for factor in sorted(set(prime_factors(inner))):
        yield _above_one(outer * factor, inner // factor)
    for factor in sorted(set(prime_factors(outer))):
        yield _above_one(outer // factor, inner * factor)


def _cuts(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Each axis of two in two, near its root first."""
    if len(shape) > 2:
        return
    factors = [prime_factors(size) for size in shape]
    for away in range(max(map(len, factors), default=0)):
        for index, size in enumerate(shape):
            for place in {len(factors[index]) // 2 + away, len(factors[index]) // 2 - away}:
                left = math.prod(factors[index][place:]) if place > 0 else size
                if 1 < left < size:
                    yield *shape[:index], left, size // left, *shape[index + 1 :]


def _above_one(*sizes: int) -> tuple[int, ...]:
    return tuple(size for size in sizes if size > 1)


def _solve(task: Task, template: Candidate, shape: tuple[int, ...], coarse: _Solved | None) -> _Solved:
    """The least time on a mesh; with a coarse solution, the axes that were not cut keep its choices."""
    candidate = replace(template, mesh=mesh_of(shape))
    narrowed = replace(task, restrict=_keep(coarse, shape), _models={}) if coarse and len(coarse.shape) > 1 else task
    models = narrowed.models(candidate)
    assert task.chain is not None
    pipeline = Pipeline(models, task.chain, candidate, task.cluster, task.modes)
    return _Solved(shape, pipeline.whole.path(pipeline.whole.price(0.0))[0], pipeline)


def _keep(coarse: _Solved, shape: tuple[int, ...]) -> Restriction:
    first = shape[0] == coarse.shape[0]  # else the first axis was cut
    kept_now, kept_before = (0, 0) if first else (2, 1)

    def restrict(op: Op, table: Ints) -> Ints:
        """Rows whose uncut axis splits what it split before."""
        chosen = coarse.loops.get(op.id)
        kept = table[table[:, kept_now] == chosen[kept_before]] if chosen else table
        return kept if len(kept) else table

    return restrict


def prime_factors(number: int) -> list[int]:
    """Prime factors, rising."""
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found
