"""The instant search: the outer choices in the order of what they promise, a short walk between meshes for the first.

Recurrence: with bound(c) as in `whole`, for the mesh that a walk starts at,

    c* = the first c by rising bound(c) whose plan fits in memory,   its mesh from `walk`

and where memory slows that plan, the best of it and of a few choices after it. Bounds are refined only as far as the
order needs them. Later outer choices with as many stages keep the mesh of the first. Repair: a plan is completed under
the memory limit by the exact stage solver; what does not fit gives way to the next choice. The answer is a plan of the
exact search's space, so it is never better than exact; its bound is the arithmetic alone. Time: one walk per number of
stages that is tried, one reduction of a block per further choice.

Source: as `walk` for the meshes, `whole` for the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from math import inf

from jupyter_autotrain.parallel.search.completion import completed
from jupyter_autotrain.parallel.search.dual import Infeasible
from jupyter_autotrain.parallel.search.outcome import Outcome
from jupyter_autotrain.parallel.search.pipeline import Pipeline
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.task import Task
from jupyter_autotrain.parallel.search.walk import PRICES, best_mesh, starts
from jupyter_autotrain.parallel.search.whole import Search, solve_candidate

# How much slower than with memory to spare a plan may be (a pipeline's stages are never quite even), and how many later
# choices are tried against one that is slower; a bad one has more.
FINE, FINE_STAGED, FURTHER = 1.02, 1.15, 3
BAD, FURTHER_IF_BAD = 2.0, 10


def recursive(search: Search, found: Sequence[Candidate]) -> None:
    """Offer one good plan; `found` says which outer choices are open."""
    task = search.task
    search.bound_s = min((task.compute_bound_s(c) for c in found), default=inf)
    if task.chain is None:
        _without_layers(search, found)
        return
    shapes: dict[int, tuple[int, ...]] = {}
    tried, slowed = 0, inf
    for some in _promising(task, found):
        pipeline = _meshed(task, some, shapes)
        outcome, least = _completed(pipeline, search.cutoff_s)
        search.least_bytes = min(search.least_bytes, least)
        tried += search.best is not None
        if outcome:
            slowed = outcome.step_s / pipeline.bound_s if outcome.step_s < search.cutoff_s else slowed
            search.offer(outcome)
        if search.best and tried >= _worth(search.best, slowed):
            return


def _worth(best: Outcome, slowed: float) -> int:
    """How many later choices to try against a plan that memory slows so much."""
    if slowed > BAD:
        return FURTHER_IF_BAD
    return FURTHER if slowed > (FINE if best.candidate.stages == 1 else FINE_STAGED) else 0


def _without_layers(search: Search, found: Sequence[Candidate]) -> None:
    for candidate in sorted(found, key=lambda c: (c.stages, c.microbatches, len(c.mesh.shape))):
        outcome, _, least = solve_candidate(search.task, candidate)
        search.least_bytes = min(search.least_bytes, least)
        if outcome:
            search.offer(outcome)
            return


def _promising(task: Task, found: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    """Candidates that differ in their mesh only, together; best bound first, then fewest pieces."""
    groups: dict[tuple[object, ...], list[Candidate]] = {}
    for c in found:
        groups.setdefault((c.stages, c.microbatches, c.schedule, c.chunks), []).append(c)
    ready = [sorted(some, key=lambda c: len(c.mesh.shape)) for some in groups.values()]
    first = [starts(task, some)[0] for some in ready]
    queue = [(task.compute_bound_s(c), c.stages * c.microbatches, i, 0) for i, c in enumerate(first)]
    heapify(queue)
    while queue:
        bound_s, pieces, index, level = queue[0]
        if level < len(_BOUNDS) and len(queue) > 1:
            refined_s = max(bound_s, _BOUNDS[level](task, first[index]))
            heapreplace(queue, (refined_s, pieces, index, level + 1))
        else:
            heappop(queue)
            yield ready[index]


def _mesh_bound_s(task: Task, candidate: Candidate) -> float:
    return task.pipeline(candidate, 1).split_bound_s


def _own_bound_s(task: Task, candidate: Candidate) -> float:
    return task.pipeline(candidate).split_bound_s


_BOUNDS = (_mesh_bound_s, _own_bound_s)


def _meshed(task: Task, some: Sequence[Candidate], shapes: dict[int, tuple[int, ...]]) -> Pipeline:
    """On the mesh that was best for as many stages, else on the best one."""
    for c in some:
        if c.mesh.shape == shapes.get(c.stages):
            return task.pipeline(c, prices=PRICES)
    solved = best_mesh(task, some)
    shapes[some[0].stages] = solved.shape
    return solved.pipeline


def _completed(pipeline: Pipeline, cutoff_s: float) -> tuple[Outcome | None, float]:
    try:
        return completed(pipeline, cutoff_s), inf
    except Infeasible as full:
        return None, full.least_bytes
