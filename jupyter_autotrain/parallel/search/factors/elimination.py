"""Exact minimisation by variable elimination.

Variables: x_v, one of S values each (an op's strategy, a recompute mode).
Objective: minimise sum_f f(x_scope(f)) over tables f.
Constraints: none; memory enters through the multiplier in the tables (see `lagrangian`).
Recurrence: eliminating v with neighbours N(v) leaves one more table,

    g(x_N(v)) = min over x_v of  sum of all tables that mention v

    until only kept variables are left; exact for every order.
Complexity: time and memory sum over v of S^(|N(v)|+1), so S^(width+1); in the min-fill order the graphs of deep
    networks have width two or three. Where a table would pass `limit` entries, or all together half a gigabyte, its
    parts are minimised apart (mini-buckets): the value is then a lower bound and the assignment feasible.
Source: Bertele and Brioschi 1972 (non-serial dynamic programming); OptCNN (Jia et al. 2018) and PaSE (Elango 2021) for
    placements; mini-buckets: Dechter and Rish 2003.
Oracle: tests/oracle/test_search_exact.py::test_elimination_equals_exhaustion_on_thousands_of_graphs
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats
from jupyter_autotrain.parallel.search.factors.elimination_order import min_fill_order
from jupyter_autotrain.parallel.search.factors.problem import Assignment, CostTable, Variable

LIMIT = 1 << 22  # entries of one table: 32 MiB of doubles
AT_ONCE = 1 << 17  # entries summed up at once: 1 MiB
ROOM = 1 << 26  # entries of all tables together (512 MiB), and of one when that is used up
LEAST = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Bucket:
    """Tables that mentioned a variable when it was eliminated; `exact` unless its tables had to be minimised apart."""

    variable: Variable
    tables: tuple[CostTable, ...]
    exact: bool

    def row(self, chosen: Mapping[Variable, int]) -> Floats:
        """Cost of each value of the variable with everything eliminated before it at its best."""
        return np.asarray(np.sum([table.at(chosen, self.variable) for table in self.tables], axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """The result of eliminating some variables.

    Attributes:
        constant: Cost that depends on no variable left.
        tables: What is left, over the kept variables.
        buckets: In the order of elimination.
    """

    constant: float
    tables: tuple[CostTable, ...]
    buckets: tuple[Bucket, ...]

    @property
    def exact(self) -> bool:
        """False where mini-buckets made the value a lower bound."""
        return all(bucket.exact for bucket in self.buckets)

    def decode(self, kept: Mapping[Variable, int] | None = None) -> Assignment:
        """Values of the eliminated variables, given those of the kept ones."""
        chosen = dict(kept or {})
        for bucket in reversed(self.buckets):
            chosen[bucket.variable] = int(bucket.row(chosen).argmin())
        return chosen


def eliminate(
    tables: Sequence[CostTable],
    *,
    keep: Iterable[Variable] = (),
    order: Sequence[Variable] | None = None,
    limit: int = LIMIT,
    check: Callable[[], None] | None = None,
) -> Reduction:
    """Eliminate all variables but the kept ones.

    Args:
        tables: The cost.
        keep: Variables to leave.
        order: Elimination order; min-fill unless given.
        limit: Most entries of one table.
        check: Called before each variable; may raise to stop.
    """
    kept = frozenset(keep)
    pool = _TableIndex(tables)
    room = ROOM
    buckets = []
    for v in min_fill_order([t.scope for t in tables], kept, check) if order is None else order:
        if check:
            check()
        parts = _mini_buckets(_merge_subsumed(pool.take(v)), v, min(limit, max(LEAST, room)))
        buckets.append(Bucket(v, tuple(chain.from_iterable(parts)), exact=len(parts) == 1))
        for part in parts:
            made = eliminate_variable(part, v)
            room -= made.values.size
            pool.add(made)
    return Reduction(pool.constant, tuple(pool.tables), tuple(buckets))


class _TableIndex:
    """Tables by the variables they mention; those that mention none add up in `constant`."""

    def __init__(self, tables: Sequence[CostTable]) -> None:
        self.constant = 0.0
        self._live: dict[int, CostTable] = {}
        self._by_variable: dict[Variable, dict[int, CostTable]] = {}
        for table in tables:
            self.add(table)

    @property
    def tables(self) -> Iterable[CostTable]:
        """Tables that are left."""
        return self._live.values()

    def add(self, table: CostTable) -> None:
        if not table.scope:
            self.constant += table.values.item()
            return
        self._live[id(table)] = table
        for v in table.scope:
            self._by_variable.setdefault(v, {})[id(table)] = table

    def take(self, v: Variable) -> list[CostTable]:
        """Remove and return all tables that mention `v`."""
        mine = list(self._by_variable.pop(v, {}).values())
        for table in mine:
            del self._live[id(table)]
            for u in table.scope:
                if u != v:
                    del self._by_variable[u][id(table)]
        return mine


def minimise(tables: Sequence[CostTable], check: Callable[[], None] | None = None) -> tuple[float, Assignment, bool]:
    """Least cost, an assignment, and whether that is exact (else the cost is a lower bound)."""
    reduction = eliminate(tables, check=check)
    return reduction.constant, reduction.decode(), reduction.exact


def sum_tables(tables: Sequence[CostTable], scope: tuple[Variable, ...], sizes: Sequence[int]) -> Floats:
    """Sum of tables over all of `scope`, in its order."""
    total = np.zeros(tuple(sizes))
    for table in tables:
        total = total + _broadcast_to(table, scope)
    return total


def eliminate_variable(tables: Sequence[CostTable], v: Variable) -> CostTable:
    """Get the least sum of `tables` over the values of `v`, some values at a time so that the work stays in cache."""
    scope = tuple(dict.fromkeys(u for table in tables for u in table.scope if u != v))
    spread = [_broadcast_to(table, (v, *scope)) for table in tables]
    count, *sizes = np.broadcast_shapes(*(array.shape for array in spread))
    step = max(1, AT_ONCE // prod(sizes))
    best = _least_sum([array[:step] for array in spread])
    for begin in range(step, count, step):
        np.minimum(best, _least_sum([array[begin : begin + step] for array in spread]), out=best)
    return CostTable(scope, best)


def _least_sum(arrays: Sequence[Floats]) -> Floats:
    total, *others = arrays
    for array in others:
        total = total + array
    return np.asarray(total.min(axis=0))


def _broadcast_to(table: CostTable, scope: tuple[Variable, ...]) -> Floats:
    """Return the table's axes in the order of `scope`, length one where it does not depend on a variable."""
    place = {v: i for i, v in enumerate(table.scope)}
    axes = [place[v] for v in scope if v in place]
    shape = [table.values.shape[place[v]] if v in place else 1 for v in scope]
    return table.values.transpose(axes).reshape(shape)


def _merge_subsumed(tables: list[CostTable]) -> list[CostTable]:
    """Add up tables of one scope, and tables over fewer variables into a larger one that covers them."""
    merged: list[CostTable] = []
    for table in sorted(tables, key=lambda t: -len(t.scope)):
        host = next((i for i, other in enumerate(merged) if set(table.scope) <= set(other.scope)), None)
        if host is None:
            merged.append(table)
        else:
            other = merged[host]
            merged[host] = CostTable(other.scope, other.values + _broadcast_to(table, other.scope))
    return merged


def _mini_buckets(tables: list[CostTable], v: Variable, limit: int) -> list[list[CostTable]]:
    """One part when its joint table fits in `limit`; else greedy parts that do."""
    sizes = {u: n for t in tables for u, n in zip(t.scope, t.values.shape, strict=True)}
    parts: list[tuple[set[Variable], list[CostTable]]] = []
    for table in tables:
        for scope, part in parts:
            if prod(sizes[u] for u in (scope | set(table.scope)) - {v}) <= limit:
                scope.update(table.scope)
                part.append(table)
                break
        else:
            parts.append((set(table.scope), [table]))
    return [part for _, part in parts]
