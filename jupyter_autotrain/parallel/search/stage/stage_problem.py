"""One pipeline stage (or the whole model): head, some blocks, tail, under a memory limit.

Variables: as `folding`; the ways to keep each op's parameters.
Objective: minimise rounds * micro_s + step_s, ties of compared plans by memory (see `problem.rank`).
Constraints: state_bytes + in_flight * act_bytes <= limit; the layouts at the borders, where they are given.
Recurrence: that of `folding` at each multiplier of the dual (see `lagrangian`). Two answers remain, one above the limit
    and one within it; spliced at block k,

    best = min over k of  first k blocks of one + the rest of the other, of those within the limit

    which leaves at most one block's worth above the bound: so some layers recompute, or share out their parameters.
Complexity: `most_multipliers` reductions of one block, one more for the least memory, then n splices of additions.
    The bound is the dual's.
Source: as `folding` and `lagrangian`; mixed layers as in Galvatron (Miao et al. 2022), there by buckets of memory.
Oracle: tests/oracle/test_search_solvers.py::test_a_stage_lies_between_its_bound_and_the_optimum_of_the_unfolded_graph
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import inf

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.table_cache import TableCache
from jupyter_autotrain.parallel.search.factors.factors import CostBreakdown, LagrangianWeights
from jupyter_autotrain.parallel.search.factors.lagrangian import (
    Bracket,
    DoesNotFit,
    DualPoint,
    LagrangianDual,
    Pruned,
    Relaxation,
    maximise_dual,
)
from jupyter_autotrain.parallel.search.factors.problem import rank
from jupyter_autotrain.parallel.search.stage.chain import Chain
from jupyter_autotrain.parallel.search.stage.folding import ChainPath, ChainTables
from jupyter_autotrain.parallel.search.stage.outcome import StagePlan, block_piece, head_piece, tail_piece

MULTIPLIERS = 10  # in practice four to eight maximise the dual


@dataclass(frozen=True, slots=True)
class StageSolution:
    """The fastest plan found within a limit.

    Attributes:
        point: The plan.
        bound_s: No plan within the limit is faster.
        multiplier: Seconds that one more byte would save; 0 where the limit does not bind.
    """

    point: DualPoint[StagePlan]
    bound_s: float
    multiplier: float = 0.0


@dataclass(frozen=True)
class StageProblem:
    """A stage: its blocks and its limits.

    Attributes:
        model: Costs on the stage's devices.
        chain: The graph.
        blocks: Blocks of this stage.
        cache: Where tables are kept, for all stages of a candidate.
        first: Whether it holds the head.
        last: Whether it holds the tail.
        in_flight: Microbatches alive at the peak.
        rounds: Microbatches that the step lasts, bubble included.
        modes: Recompute modes to choose from.
        begin: State of the end before the first block; needed unless `first`.
        end: State to end in; free when None.
        most_multipliers: Most multipliers to try where memory binds.
    """

    model: CostModel
    chain: Chain
    blocks: int
    cache: TableCache = field(repr=False, compare=False)
    first: bool = True
    last: bool = True
    in_flight: float = 1.0
    rounds: float = 0.0
    modes: tuple[Recompute, ...] = (Recompute.NONE,)
    begin: int | None = None
    end: int | None = None
    most_multipliers: int = MULTIPLIERS

    def tables(self, weights: LagrangianWeights) -> ChainTables:
        """Return the tables at some weights; made once."""

        def make() -> ChainTables:
            modes = self.modes if weights.multiplier or Recompute.NONE not in self.modes else (Recompute.NONE,)
            self.model.price_edges(self.chain.representative_ops)
            return ChainTables(self.model, self.chain, weights, modes, self.cache)

        return self.cache.get(ChainTables, (self.model, self.modes, weights), make)

    def weights(self, multiplier: float) -> LagrangianWeights:
        """All weights; without a multiplier the number in flight is irrelevant."""
        return LagrangianWeights(multiplier, in_flight=self.in_flight if multiplier else 1.0, rounds=self.rounds)

    def path(self, weights: LagrangianWeights) -> ChainPath:
        """Return the best path at some weights."""
        tables = self.tables(weights)
        return tables.path(*self._between(tables))

    def solve(self, weights: LagrangianWeights) -> Relaxation[StagePlan]:
        """Return the best plan at some weights."""
        tables = self.tables(weights)
        value, shared, states = tables.path(*self._between(tables))
        return Relaxation(value, self._point(self._plan(tables, shared, states)))

    def _between(self, tables: ChainTables) -> tuple[Floats, Floats, int]:
        """Costs at both ends of a path, and the steps between."""
        start = tables.head().costs if self.first else self._only(self.begin, tables)
        stop = tables.tail().costs if self.last else self._only(self.end, tables)
        return start, stop, self.blocks - 1 if self.first else self.blocks

    def minimise(self, limit_bytes: float = inf, cutoff_s: float = inf, multiplier: float = 0.0) -> StageSolution:
        """Return the fastest plan found within the limit.

        Args:
            limit_bytes: Memory of a rank.
            cutoff_s: Seconds to beat.
            multiplier: Of a similar problem; tried first, it often rules this one out.

        Raises:
            DoesNotFit: With the least memory that would do.
            Pruned: Nothing faster than `cutoff_s` can exist.
        """
        free = self.solve(self.weights(0.0))
        if free.point.bytes <= limit_bytes:
            return StageSolution(free.point, min(free.value, free.point.seconds))
        known = self._bracket(free, limit_bytes, cutoff_s, multiplier)
        dual = maximise_dual(
            lambda p: self.solve(self.weights(p)), known, limit_bytes, rounds=self.most_multipliers, cutoff_s=cutoff_s
        )
        return StageSolution(self._spliced(dual, limit_bytes), dual.bound_s, dual.multiplier)

    def _bracket(
        self, free: Relaxation[StagePlan], limit: float, cutoff_s: float, multiplier: float
    ) -> Bracket[StagePlan]:
        bound_s = free.value
        at_multiplier = 0.0
        infeasible = free.point
        feasible = None
        if multiplier:
            guess = self.solve(self.weights(multiplier))
            guessed_s = guess.value - multiplier * limit
            if guessed_s >= bound_s:
                bound_s = guessed_s
                at_multiplier = multiplier
            if guess.point.bytes <= limit:
                feasible = guess.point
            else:
                infeasible = guess.point
        if bound_s >= cutoff_s:
            raise Pruned
        feasible = feasible or self.lightest()
        if feasible.bytes > limit:
            raise DoesNotFit(feasible.bytes)
        return Bracket(infeasible, feasible, bound_s, at_multiplier)

    def lightest(self) -> DualPoint[StagePlan]:
        """Return the plan with the least memory, the fastest of those."""
        return self.solve(replace(self.weights(1.0), time_weight=1j)).point

    def _point(self, plan: StagePlan) -> DualPoint[StagePlan]:
        breakdown = plan.breakdown
        rounds = self.rounds or self.model.microbatches
        return DualPoint(rounds * breakdown.micro_s + breakdown.step_s, breakdown.bytes(self.in_flight), plan)

    def _only(self, state: int | None, tables: ChainTables) -> Floats:
        """Return zero at one state (or at all), infinite elsewhere."""
        row = np.full(tables.step().costs.shape[:2], inf if state is not None else 0.0)
        if state is not None:
            row[:, state] = 0.0
        return row

    def _plan(self, tables: ChainTables, shared: int, states: Sequence[int]) -> StagePlan:
        pieces = [head_piece(tables, shared, states[0])] if self.first else []
        pieces += [block_piece(tables, shared, a, c) for a, c in pairwise(states)]
        after = states if self.first else states[1:]
        if self.last:
            pieces.append(tail_piece(tables, shared, states[-1]))
        return StagePlan(tuple(pieces), tuple((shared, state) for state in after), tables)

    def _spliced(self, dual: LagrangianDual[StagePlan], limit: float) -> DualPoint[StagePlan]:
        best = dual.best
        fitting = dual.feasible.assignment
        exceeding = dual.infeasible.assignment
        for first, second in ((fitting, exceeding), (exceeding, fitting)):
            for seconds, held, plan in self._splices(first, second):
                if held <= limit and rank(seconds, held) < best.rank:
                    best = DualPoint(seconds, held, self._splice(first, second, plan))
        return best

    def _splices(self, first: StagePlan, second: StagePlan) -> Iterator[tuple[float, float, int]]:
        """Seconds and bytes of the first `k` pieces of one plan and the rest of the other, for every k."""
        if first.states[0][0] != second.states[0][0]:
            return
        empty = CostBreakdown()
        before = list(accumulate((p.breakdown for p in first.pieces), initial=empty))
        after = list(accumulate((p.breakdown for p in reversed(second.pieces)), initial=empty))
        rounds = self.rounds or self.model.microbatches
        for k in range(1, len(first.states)):
            joint = block_piece(second.tables, *first.states[k - 1], second.states[k][1])
            breakdown = before[k] + joint.breakdown + after[len(second.pieces) - k - 1]
            yield rounds * breakdown.micro_s + breakdown.step_s, breakdown.bytes(self.in_flight), k

    def _splice(self, first: StagePlan, second: StagePlan, k: int) -> StagePlan:
        joint = block_piece(second.tables, *first.states[k - 1], second.states[k][1])
        pieces = (*first.pieces[:k], joint, *second.pieces[k + 1 :])
        return StagePlan(pieces, (*first.states[:k], *second.states[k:]), second.tables)
