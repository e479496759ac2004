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
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.cost.model import CostModel
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


@dataclass(eq=False)
class BlockReduction:
    """Some ops reduced to a table over kept variables; the recompute mode is one more variable, chosen at the end.

    A part of `ChainTables`, made on first use.
    """

    model: CostModel
    ops: Sequence[int]
    kept: tuple[int, ...]
    weights: LagrangianWeights
    modes: tuple[Recompute, ...]
    order: Sequence[int] | None = None

    @property
    def left(self) -> tuple[int, ...]:
        """Variables of the table: the mode, where there is a choice, and the kept ones."""
        return (MODE_VARIABLE, *self.kept) if len(self.modes) > 1 else self.kept

    @cached_property
    def reduction(self) -> Reduction:
        """Down to what is left; all modes in one go, since their tables have the same scopes."""
        tables = tables_of(self.model, self.ops, self.modes, self.weights)
        order = self.order or min_fill_order([t.scope for t in tables], frozenset(self.left))
        return eliminate(tables, keep=self.left, order=order, limit=LIMIT * len(self.modes))

    @cached_property
    def by_mode(self) -> Floats:
        """(modes, kept...) table."""
        sizes = [len(self.modes), *(len(self.model.op(v).table) for v in self.kept)]
        table = sum_tables(self.reduction.tables, self.left, sizes[-len(self.left) :] if self.left else ())
        return (table + self.reduction.constant).reshape(sizes)

    @cached_property
    def best(self) -> Floats:
        """(kept...) table over the best mode."""
        return np.asarray(self.by_mode.min(axis=0))

    def decode(self, at: dict[int, int]) -> tuple[Recompute, dict[int, int]]:
        """The mode and the strategies of `ops`, given the kept ones."""
        place = tuple(at[v] for v in self.kept)
        mode = int(np.argmin([table[place] for table in self.by_mode]))
        chosen = self.reduction.decode(at | {MODE_VARIABLE: mode})
        return self.modes[mode], {op: chosen[op] for op in self.ops}


class ChainPath(NamedTuple):
    """A way through the blocks: its value, the state of the shared ops, and of the ends before and after each step.

    The value is in bytes where bytes come first (see `LagrangianWeights.time_weight`).
    """

    value: float
    shared: int
    states: list[int]


@dataclass(eq=False)
class ChainTables:
    """Head, block and tail of a chain, reduced at some weights. States: shared k, block ends a and c, flattened.

    An entry of the table cache, each part made on first use.
    """

    model: CostModel
    chain: Chain
    weights: LagrangianWeights
    modes: tuple[Recompute, ...]

    @cached_property
    def shared_sizes(self) -> tuple[int, ...]:
        """Strategies of the context ops."""
        return tuple(len(self.model.op(v).table) for v in self.chain.shared)

    @cached_property
    def end_sizes(self) -> tuple[int, ...]:
        """Strategies of a block's end ops."""
        return tuple(len(self.model.op(v).table) for v in self.chain.end(0))

    @cached_property
    def first_block(self) -> BlockReduction:
        """Block 0 between what it reads from the head and its own end."""
        chain = self.chain
        sources = {e.source for op in chain.block(0) for e in self.model.edges_into(op) if e.source < chain.run.start}
        return BlockReduction(self.model, chain.block(0), (*sorted(sources), *chain.end(0)), self.weights, self.modes)

    @cached_property
    def head_reduction(self) -> Reduction:
        """Head ops and block 0, down to context and the end of block 0."""
        tables = tables_of(self.model, self.chain.head, NO_RECOMPUTE, self.weights)
        tables.append(CostTable(self.first_block.kept, self.first_block.best))
        return eliminate(tables, keep=(*self.chain.shared, *self.chain.end(0)))

    @cached_property
    def head(self) -> Floats:
        """(context, end of block 0)."""
        scope = (*self.chain.shared, *self.chain.end(0))
        table = sum_tables(self.head_reduction.tables, scope, self.shared_sizes + self.end_sizes)
        return (table + self.head_reduction.constant).reshape(prod(self.shared_sizes), -1)

    @cached_property
    def block(self) -> BlockReduction:
        """A block after the first, between the end before it and its own."""
        chain = self.chain
        kept = (*chain.shared, *chain.end(0), *chain.end(1))
        return BlockReduction(self.model, chain.block(1), kept, self.weights, self.modes)

    @cached_property
    def step(self) -> Floats:
        """(context, end before, end)."""
        ends = prod(self.end_sizes)
        return self.block.best.reshape(-1, ends, ends)

    @cached_property
    def tail_reduction(self) -> Reduction:
        """Tail ops down to context and the last end."""
        last = self.chain.end(self.chain.run.count - 1)
        tables = tables_of(self.model, self.chain.tail, NO_RECOMPUTE, self.weights)
        return eliminate(tables, keep=(*self.chain.shared, *last))

    @cached_property
    def tail(self) -> Floats:
        """(context, last end)."""
        scope = (*self.chain.shared, *self.chain.end(self.chain.run.count - 1))
        table = sum_tables(self.tail_reduction.tables, scope, self.shared_sizes + self.end_sizes)
        return (table + self.tail_reduction.constant).reshape(prod(self.shared_sizes), -1)

    def path(self, start: Floats, stop: Floats, blocks: int) -> ChainPath:
        """The best way through `blocks` steps: the recurrence of this module.

        Args:
            start: (context, state) cost of being at the first end.
            stop: (context, state) cost of finishing at the last end.
            blocks: Steps between.
        """
        rows = [start]
        for _ in range(blocks):
            rows.append(step_forward(rows[-1], self.step))
        total = rows[-1] + stop
        shared, state = (int(x) for x in np.unravel_index(int(total.argmin()), total.shape))
        states = [state]
        for row in reversed(rows[:-1]):
            states.append(int((row[shared] + self.step[shared, :, states[-1]]).argmin()))
        return ChainPath(float(total[shared, state].real), shared, states[::-1])

    def end_assignment(self, shared: int, state: int) -> dict[int, int]:
        """Strategies of the context and of the end of block 0."""
        at = self._assignment_at(self.chain.shared, self.shared_sizes, shared)
        return at | self._assignment_at(self.chain.end(0), self.end_sizes, state)

    def last_end_assignment(self, shared: int, state: int) -> dict[int, int]:
        """Strategies of the context and of the last block's end."""
        at = self._assignment_at(self.chain.shared, self.shared_sizes, shared)
        return at | self._assignment_at(self.chain.end(self.chain.run.count - 1), self.end_sizes, state)

    def decode_block(self, shared: int, before: int, after: int) -> tuple[Recompute, dict[int, int]]:
        """Mode and strategies of a later block, as ids of block 1."""
        end = self._assignment_at(self.chain.end(1), self.end_sizes, after)
        return self.block.decode(self.end_assignment(shared, before) | end)

    def decode_head(self, shared: int, end: int) -> tuple[dict[int, int], Recompute, dict[int, int]]:
        """Strategies of the head, then mode and strategies of block 0."""
        head = self.head_reduction.decode(self.end_assignment(shared, end))
        mode, first = self.first_block.decode(head)
        return {op: head[op] for op in self.chain.head}, mode, first

    def decode_tail(self, shared: int, end: int) -> dict[int, int]:
        """Strategies of the tail."""
        found = self.tail_reduction.decode(self.last_end_assignment(shared, end))
        return {op: found[op] for op in self.chain.tail}

    def _assignment_at(self, ops: tuple[int, ...], sizes: tuple[int, ...], state: int) -> dict[int, int]:
        values = np.unravel_index(state, sizes) if sizes else ()
        return {op: int(value) for op, value in zip(ops, values, strict=True)}
