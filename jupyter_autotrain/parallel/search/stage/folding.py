"""Layer folding: equal blocks are reduced once to a table between their ends; a shortest path goes through all of them.

Variables: the state s_i of the ops at the end of block i, the state k of the shared ops (read by all blocks); inside a
    block its ops' strategies and its recompute mode.
Objective: minimise head(k, s_0) + sum_i T(k, s_i, s_(i+1)) + tail(k, s_n), in seconds + multiplier * bytes
    (or bytes, ties by seconds).
Constraints: none; memory enters through the multiplier.
Recurrence: with T(k, a, c) the least cost of one block between its ends (see `elimination`),

    row_0 = head;   row_(i+1)(k, c) = min over a of  row_i(k, a) + T(k, a, c);   value = min of row_n + tail

    and the states of the best path are read backwards from the rows. Exact: a block touches its neighbours only
    through its ends.
Complexity: one elimination of a block, then n products of a row with a table: n K S^2 for K shared and S end states.
Source: the Viterbi recursion (Bellman 1957) in the min-plus semiring (Mohri 2002).
Oracle: tests/oracle/test_search_plans.py::test_folding_changes_nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.table_cache import TableCache
from jupyter_autotrain.parallel.search.factors.elimination import LIMIT, Reduction, eliminate, sum_tables
from jupyter_autotrain.parallel.search.factors.elimination_order import min_fill_order
from jupyter_autotrain.parallel.search.factors.factors import MODE_VARIABLE, NO_RECOMPUTE, LagrangianWeights, tables_of
from jupyter_autotrain.parallel.search.factors.problem import CostTable
from jupyter_autotrain.parallel.search.stage.chain import Chain


def step_forward(row: Floats, table: Floats) -> Floats:
    """(context, a) row times (context, a, c) table."""
    return np.asarray((row[:, :, None] + table).min(axis=1))


def step_back(table: Floats, row: Floats) -> Floats:
    """(context, a, c) table times (context, c) row."""
    return np.asarray((table + row[:, None, :]).min(axis=2))


@dataclass(frozen=True, slots=True, eq=False)
class BlockTables:
    """One block reduced to tables over kept variables; the recompute mode is one more variable, chosen at the end.

    Attributes:
        ops: The block's ops.
        kept: Variables of the tables.
        modes: Recompute modes to choose from.
        reduction: Down to the kept variables, and the mode where there is a choice.
        by_mode: (modes, kept...) costs.
        best: (kept...) costs at the best mode.
    """

    ops: Sequence[int]
    kept: tuple[int, ...]
    modes: tuple[Recompute, ...]
    reduction: Reduction
    by_mode: Floats
    best: Floats

    def decode(self, at: dict[int, int]) -> tuple[Recompute, dict[int, int]]:
        """Return the mode and the strategies of `ops`, given the kept ones."""
        place = tuple(at[v] for v in self.kept)
        mode = int(np.argmin([table[place] for table in self.by_mode]))
        chosen = self.reduction.decode(at | {MODE_VARIABLE: mode})
        return self.modes[mode], {op: chosen[op] for op in self.ops}


@dataclass(frozen=True, slots=True, eq=False)
class HeadTables:
    """Head and block 0, reduced to (context, end of block 0) costs."""

    first_block: BlockTables
    reduction: Reduction
    costs: Floats


@dataclass(frozen=True, slots=True, eq=False)
class StepTables:
    """A block after the first, reduced to (context, end before, end) costs."""

    block: BlockTables
    costs: Floats


@dataclass(frozen=True, slots=True, eq=False)
class TailTables:
    """The tail, reduced to (context, last end) costs."""

    reduction: Reduction
    costs: Floats


class ChainPath(NamedTuple):
    """A way through the blocks: its value, the state of the shared ops, and of the ends before and after each step.

    The value is in bytes where bytes come first (see `LagrangianWeights.time_weight`).
    """

    value: float
    shared: int
    states: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class ChainTables:
    """Head, block and tail of a chain, reduced at some weights. States: shared k, block ends a and c, flattened.

    Each part is reduced when it is first asked for, and then an entry of the cache.
    """

    model: CostModel
    chain: Chain
    weights: LagrangianWeights
    modes: tuple[Recompute, ...]
    cache: TableCache = field(repr=False)

    def head(self) -> HeadTables:
        """Return the tables of head and block 0."""
        return self.cache.get(HeadTables, self, self._reduce_head)

    def step(self) -> StepTables:
        """Return the tables of a block after the first."""
        return self.cache.get(StepTables, self, self._reduce_step)

    def tail(self) -> TailTables:
        """Return the tables of the tail."""
        return self.cache.get(TailTables, self, self._reduce_tail)

    def _reduce_head(self) -> HeadTables:
        chain = self.chain
        edges = (edge for op in chain.block(0) for edge in self.model.edges_into(op))
        sources = sorted({edge.source for edge in edges if edge.source < chain.run.start})
        first_block = self._reduce_block(chain.block(0), (*sources, *chain.end(0)))
        tables = tables_of(self.model, chain.head, NO_RECOMPUTE, self.weights)
        tables.append(CostTable(first_block.kept, first_block.best))
        reduction = eliminate(tables, keep=(*chain.shared, *chain.end(0)))
        return HeadTables(first_block, reduction, self._between_shared_and(chain.end(0), reduction))

    def _reduce_step(self) -> StepTables:
        chain = self.chain
        block = self._reduce_block(chain.block(1), (*chain.shared, *chain.end(0), *chain.end(1)))
        ends = prod(self._sizes(chain.end(0)))
        return StepTables(block, block.best.reshape(-1, ends, ends))

    def _reduce_tail(self) -> TailTables:
        last = self._last_end()
        tables = tables_of(self.model, self.chain.tail, NO_RECOMPUTE, self.weights)
        reduction = eliminate(tables, keep=(*self.chain.shared, *last))
        return TailTables(reduction, self._between_shared_and(last, reduction))

    def _reduce_block(self, ops: Sequence[int], kept: tuple[int, ...]) -> BlockTables:
        """Reduce some ops to the kept ones; all modes in one go, since their tables have the same scopes."""
        modes = self.modes
        left = (MODE_VARIABLE, *kept) if len(modes) > 1 else kept
        tables = tables_of(self.model, ops, modes, self.weights)
        order = min_fill_order([table.scope for table in tables], frozenset(left))
        reduction = eliminate(tables, keep=left, order=order, limit=LIMIT * len(modes))
        sizes = (len(modes), *self._sizes(kept))
        total = sum_tables(reduction.tables, left, sizes[-len(left) :] if left else ())
        by_mode = (total + reduction.constant).reshape(sizes)
        return BlockTables(ops, kept, modes, reduction, by_mode, np.asarray(by_mode.min(axis=0)))

    def _between_shared_and(self, end: tuple[int, ...], reduction: Reduction) -> Floats:
        """Return what is left of a reduction as (context, end) costs."""
        sizes = self._sizes((*self.chain.shared, *end))
        table = sum_tables(reduction.tables, (*self.chain.shared, *end), sizes)
        return (table + reduction.constant).reshape(prod(self._sizes(self.chain.shared)), -1)

    def _sizes(self, ops: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many strategies each of some ops has."""
        return tuple(len(self.model.op(op).table) for op in ops)

    def _last_end(self) -> tuple[int, ...]:
        return self.chain.end(self.chain.run.count - 1)

    def path(self, start: Floats, stop: Floats, blocks: int) -> ChainPath:
        """Return the best way through `blocks` steps, by the recurrence of this module.

        Args:
            start: (context, state) cost of being at the first end.
            stop: (context, state) cost of finishing at the last end.
            blocks: Steps between.
        """
        rows = [start]
        for _ in range(blocks):
            rows.append(step_forward(rows[-1], self.step().costs))
        total = rows[-1] + stop
        shared, state = map(int, np.unravel_index(int(total.argmin()), total.shape))
        states = [state]
        for row in reversed(rows[:-1]):
            states.append(int((row[shared] + self.step().costs[shared, :, states[-1]]).argmin()))
        return ChainPath(float(total[shared, state].real), shared, states[::-1])

    def end_assignment(self, shared: int, state: int) -> dict[int, int]:
        """Return the strategies of the context and of the end of block 0."""
        return self._assignment_at(self.chain.shared, shared) | self._assignment_at(self.chain.end(0), state)

    def last_end_assignment(self, shared: int, state: int) -> dict[int, int]:
        """Return the strategies of the context and of the last block's end."""
        return self._assignment_at(self.chain.shared, shared) | self._assignment_at(self._last_end(), state)

    def decode_block(self, shared: int, before: int, after: int) -> tuple[Recompute, dict[int, int]]:
        """Return mode and strategies of a later block, as ids of block 1."""
        end = self._assignment_at(self.chain.end(1), after)
        return self.step().block.decode(self.end_assignment(shared, before) | end)

    def decode_head(self, shared: int, end: int) -> tuple[dict[int, int], Recompute, dict[int, int]]:
        """Return the strategies of the head, then mode and strategies of block 0."""
        tables = self.head()
        head = tables.reduction.decode(self.end_assignment(shared, end))
        mode, first = tables.first_block.decode(head)
        return {op: head[op] for op in self.chain.head}, mode, first

    def decode_tail(self, shared: int, end: int) -> dict[int, int]:
        """Return the strategies of the tail."""
        found = self.tail().reduction.decode(self.last_end_assignment(shared, end))
        return {op: found[op] for op in self.chain.tail}

    def _assignment_at(self, ops: tuple[int, ...], state: int) -> dict[int, int]:
        values = np.unravel_index(state, self._sizes(ops)) if ops else ()
        return {op: int(value) for op, value in zip(ops, values, strict=True)}
