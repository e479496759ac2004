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
from dataclasses import dataclass, replace
from math import inf

from jupyter_autotrain.parallel.cost.layout import Ints
from jupyter_autotrain.parallel.cost.model import Restriction
from jupyter_autotrain.parallel.graph.graph import Op
from jupyter_autotrain.parallel.search.dual import Infeasible
from jupyter_autotrain.parallel.search.pipeline import Outcome, Pipeline
from jupyter_autotrain.parallel.search.space import Candidate, mesh_of
from jupyter_autotrain.parallel.search.whole import Search, Task, solve_candidate

CUTS = 1  # places at which an outer axis is cut


@dataclass(frozen=True, slots=True)
class _Solved:
    """A mesh with its least time, the plan behind it, and what each op splits along each axis."""

    shape: tuple[int, ...]
    seconds: float
    pipeline: Pipeline
    loops: Mapping[int, tuple[int, ...]]


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
    template, open_shapes = some[0], {c.mesh.shape for c in some}
    best: _Solved | None = None
    for shape in _moves(template.mesh.devices, task.cluster.levels[0].size):
        if shape in open_shapes:
            solved = _solve(task, template, shape, None)
            best = min(best or solved, solved, key=lambda s: s.seconds)
    best = best or _solve(task, template, min(open_shapes, key=len), None)
    for shape in _cuts(best.shape):
        if shape in open_shapes:
            best = min(best, _solve(task, template, shape, best), key=lambda s: s.seconds)
    return best


def _moves(devices: int, chassis: int) -> Iterator[tuple[int, ...]]:
    """(n), then the factors of a chassis as an inner axis."""
    yield (devices,) if devices > 1 else ()
    inner = math.gcd(devices, chassis)
    if 1 < inner < devices:
        yield devices // inner, inner
    elif inner > 3:
        factor = prime_factors(inner)[0]
        yield devices // factor, factor


def _cuts(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The outer axis of a shape in two, at a few places spread over its factors."""
    outer, rest = shape[:1], shape[1:]
    factors = prime_factors(outer[0]) if outer else []
    for place in sorted({len(factors) * k // (CUTS + 1) for k in range(1, CUTS + 1)} - {0}):
        left = math.prod(factors[:place])
        yield left, outer[0] // left, *rest


def _solve(task: Task, template: Candidate, shape: tuple[int, ...], coarse: _Solved | None) -> _Solved:
    """The least time on a mesh; with a coarse solution, the inner axes keep its choices."""
    candidate = replace(template, mesh=mesh_of(shape))
    narrowed = replace(task, restrict=_keep(coarse), _models={}) if coarse and len(coarse.shape) > 1 else task
    models = narrowed.models(candidate)
    assert task.chain is not None
    pipeline = Pipeline(models, task.chain, candidate, task.cluster, task.modes)
    point = pipeline.whole.solve(pipeline.whole.price(0.0)).point
    loops: dict[int, tuple[int, ...]] = {}
    for piece in point.what.pieces:
        for op, choice in piece.choices.items():
            loops[models[0].twin(op)] = tuple(models[0].table_rows(op)[choice.strategy].tolist())
    return _Solved(shape, point.seconds, pipeline, loops)


def _keep(coarse: _Solved) -> Restriction:
    def restrict(op: Op, table: Ints) -> Ints:
        """Rows whose inner axes split what they split before."""
        chosen = coarse.loops.get(op.id)
        kept = table[(table[:, 2:] == chosen[1:]).all(axis=1)] if chosen else table
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
