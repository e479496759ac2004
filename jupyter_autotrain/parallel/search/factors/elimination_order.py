"""The order in which variables are eliminated: min-fill.

Variables: a permutation of the variables that are not kept.
Objective: few entries of tables; min-fill is a heuristic, a best order is NP-hard to find.
Constraints: kept variables are not eliminated.
Recurrence: next is the variable whose neighbours lack the fewest edges among themselves; ties by degree, then by
    number; its neighbours then become a clique.
Complexity: v d^2 log v for v variables of d neighbours.
Source: min-fill, Kjaerulff 1990.
Oracle: tests/oracle/test_search_exact.py::test_the_order_of_elimination_is_min_fill
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from jupyter_autotrain.parallel.search.factors.problem import Variable, neighbours


def min_fill_order(
    scopes: Iterable[tuple[Variable, ...]], keep: frozenset[Variable], check: Callable[[], None] | None = None
) -> tuple[Variable, ...]:
    """Variables in the order that adds the fewest fill-in edges; ties by degree, then by number."""
    return _min_fill(_OrderRequest(tuple(scopes), keep, check))


@dataclass(frozen=True, slots=True)
class _OrderRequest:
    """The request for an order; how it may be stopped is no part of its identity."""

    scopes: tuple[tuple[Variable, ...], ...]
    keep: frozenset[Variable]
    check: Callable[[], None] | None = field(compare=False)


@lru_cache(maxsize=256)
def _min_fill(request: _OrderRequest) -> tuple[Variable, ...]:
    keep = request.keep
    check = request.check
    near = neighbours(request.scopes)

    def rank(v: Variable) -> tuple[int, int, int]:
        others = near[v]
        fill = sum(len(others - near[u]) - 1 for u in others) // 2 if len(others) > 1 else 0
        return fill, len(others), v

    heap = list(map(rank, near.keys() - keep))
    heapq.heapify(heap)
    order: list[Variable] = []
    gone: set[Variable] = set()
    while heap:
        entry = heapq.heappop(heap)
        v = entry[-1]
        if check:
            check()
        if v in gone or entry != rank(v):
            continue
        order.append(v)
        gone.add(v)
        for u in _join_neighbours(near, v) - keep - gone:
            heapq.heappush(heap, rank(u))
    return tuple(order)


def _join_neighbours(near: dict[Variable, set[Variable]], v: Variable) -> set[Variable]:
    """Take a variable out, its neighbours a clique from then on; return whose rank may have changed."""
    others = near.pop(v)
    touched = set(others)
    for u in others:
        near[u] |= others - {u}
        near[u].discard(v)
        touched |= near[u] if len(others) > 1 else set()
    return touched
