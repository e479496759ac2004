"""Exact minimisation under a memory limit: the Lagrangian dual, then branch and bound on its gap.

Variables: as `problem`.
Objective: minimise sum_f seconds_f(x), ties of compared plans by memory (see `problem.rank`).
Constraints: sum_f bytes_f(x) <= limit.
Recurrence: depth first against the order of elimination; each bucket (see `elimination`) gives the exact least
    completion of a partial assignment a, and a is cut unless

    L_a(y) < best   and   seconds_a < best   and   bytes_a <= limit

    with y the best multiplier of the dual (see `lagrangian`).
Complexity: a few eliminations, then `nodes` nodes at most; past them the answer carries its gap.
Source: Geoffrion 1974 (Lagrangian relaxation); Marinescu and Dechter 2009 (branch and bound on bucket costs).
Oracle: tests/oracle/test_search_exact.py::test_under_a_memory_bound_the_answer_is_still_the_best_on_thousands_of_graphs
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import numpy as np

from jupyter_autotrain.parallel.search.factors.elimination import Reduction, eliminate
from jupyter_autotrain.parallel.search.factors.elimination_order import min_fill_order
from jupyter_autotrain.parallel.search.factors.lagrangian import (
    SLACK,
    Bracket,
    DoesNotFit,
    DualPoint,
    LagrangianDual,
    Relaxation,
    maximise_dual,
    relative_gap,
)
from jupyter_autotrain.parallel.search.factors.problem import Assignment, CostTable, Problem, Variable, rank

NODES = 20_000
_Visit: TypeAlias = Iterator["_Visit"]


@dataclass(frozen=True, slots=True)
class BoundedSolution:
    """An answer with its certificate: no assignment that fits takes fewer than `bound_s` seconds."""

    seconds: float
    bytes: float
    assignment: Assignment
    bound_s: float

    @property
    def gap(self) -> float:
        """Relative distance to the bound; 0.0 when proved best."""
        return relative_gap(self.seconds, self.bound_s)


def minimise_bounded(
    problem: Problem, limit_bytes: float = inf, *, nodes: int = NODES, check: Callable[[], None] | None = None
) -> BoundedSolution:
    """Return the best assignment with at most `limit_bytes`, and how good it is.

    Raises:
        DoesNotFit: When nothing fits, with the least memory that would do.
    """
    order = min_fill_order([f.scope for f in problem.factors], frozenset(), check)

    def weighted(tables: list[CostTable]) -> Relaxation[_Eliminated]:
        reduction = eliminate(tables, order=order, check=check)
        chosen = reduction.decode()
        point = DualPoint(problem.seconds_of(chosen), problem.bytes_of(chosen), _Eliminated(reduction, chosen))
        return Relaxation(reduction.constant, point)

    free = weighted(problem.weighted(0.0))
    fast = free.point
    if fast.bytes <= limit_bytes:
        return BoundedSolution(fast.seconds, fast.bytes, fast.assignment.values, min(free.value, fast.seconds))
    least = weighted(problem.bytes_only())
    if least.point.bytes > limit_bytes:
        raise DoesNotFit(least.point.bytes)
    known = Bracket(fast, least.point, free.value)
    dual = maximise_dual(lambda multiplier: weighted(problem.weighted(multiplier)), known, limit_bytes)
    best = dual.best
    exact = fast.assignment.reduction.exact and dual.at_multiplier.assignment.reduction.exact
    if not exact or best.seconds <= dual.bound_s * (1 + SLACK):
        return BoundedSolution(best.seconds, best.bytes, best.assignment.values, min(dual.bound_s, best.seconds))
    reductions = (dual.at_multiplier.assignment.reduction, fast.assignment.reduction, least.point.assignment.reduction)
    return _DepthFirstSearch(
        problem, limit_bytes, (best.seconds, best.bytes, best.assignment.values), reductions, nodes
    ).run(dual)


@dataclass(frozen=True, slots=True)
class _Eliminated:
    """An elimination and the assignment it gave."""

    reduction: Reduction
    values: Assignment


class _DepthFirstSearch:
    """Depth-first search over a reduction's buckets, three bounds at once."""

    def __init__(
        self,
        problem: Problem,
        limit: float,
        best: tuple[float, float, Assignment],
        reductions: tuple[Reduction, Reduction, Reduction],
        nodes: int,
    ) -> None:
        self._problem = problem
        self._limit = limit
        self._best = best
        self._nodes = nodes
        self._reductions = reductions
        self._open_bound = inf
        self._chosen: dict[Variable, int] = {}
        byte_buckets = {b.variable: b for b in reductions[2].buckets if b.tables}
        self._layers = [
            (p, f, byte_buckets.get(p.variable))
            for p, f in zip(reversed(reductions[0].buckets), reversed(reductions[1].buckets), strict=True)
        ]

    def run(self, dual: LagrangianDual[_Eliminated]) -> BoundedSolution:
        """Search to the end, or to the node limit."""
        weighted, free, least = (r.constant for r in self._reductions)
        stack = [self._visit(0, (weighted - dual.multiplier * self._limit, free, least))]
        while stack:
            deeper = next(stack[-1], None)
            if deeper:
                stack.append(deeper)
            else:
                stack.pop()
        proved = min(self._best[0], max(dual.bound_s, min(self._open_bound, self._best[0])))
        return BoundedSolution(*self._best, proved)

    def _visit(self, depth: int, bounds: tuple[float, float, float]) -> Iterator[_Visit]:
        """Expand a node; yields its children, each of which is expanded before the next one is made."""
        if depth == len(self._layers):
            self._leaf()
            return
        if self._nodes <= 0:
            self._open_bound = min(self._open_bound, max(bounds[0], bounds[1]))
            return
        weighted, free, least = self._layers[depth]
        rows = [bucket.row(self._chosen) if bucket else np.zeros(1) for bucket in (weighted, free, least)]
        first, second, third = (np.broadcast_to(row - row.min(), rows[0].shape) for row in rows)
        for value in first.argsort(kind="stable").tolist():
            after = (bounds[0] + first[value], bounds[1] + second[value], bounds[2] + third[value])
            if after[0] >= self._best[0] * (1 - SLACK):
                break
            if after[1] >= self._best[0] * (1 - SLACK) or after[2] > self._limit * (1 + SLACK):
                continue
            self._nodes -= 1
            self._chosen[weighted.variable] = value
            yield self._visit(depth + 1, after)
            del self._chosen[weighted.variable]

    def _leaf(self) -> None:
        chosen = dict(self._chosen)
        seconds = self._problem.seconds_of(chosen)
        held = self._problem.bytes_of(chosen)
        if held <= self._limit and rank(seconds, held) < self._best[:2]:
            self._best = (seconds, held, chosen)
