"""One pipeline stage (or the whole model): head, some blocks, tail, under a memory limit.

Recurrence: the least priced path through head, T^(n-1), tail (see `folding`) inside the dual (see `dual`). At the best
price two answers remain, one just above the limit and one within it; splicing the first blocks of one to the last of
the other leaves at most one block's worth between the bound and the answer, since blocks mix freely: this is how some
layers recompute, or share out their parameters, and others do not. Time: a few reductions of one block per stage, then
n splices of additions. The bound is the dual's, so the gap is true.

Source: as `folding` and `dual`; mixing layers as in Galvatron (Miao et al. 2022), there by buckets of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import inf

import numpy as np

from jupyter_autotrain.parallel.cost.collectives import Floats
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.search.chain import Chain
from jupyter_autotrain.parallel.search.dual import Bracket, Dual, Infeasible, Point, Priced, best_price
from jupyter_autotrain.parallel.search.folding import ChainTables
from jupyter_autotrain.parallel.search.loads import Load, Price
from jupyter_autotrain.parallel.search.pieces import StagePlan, Tables

PRICES = 10  # in practice four to eight bring the dual to its top
LIGHTEST = Price(per_byte=1.0, per_second=1e-6)  # least memory; seconds only break ties


@dataclass(frozen=True, slots=True)
class Fastest:
    """The fastest plan found within a limit.

    Attributes:
        point: The plan.
        bound_s: No plan within the limit is faster.
        byte_s: Seconds that one more byte would save; 0 where the limit does not bind.
    """

    point: Point[StagePlan]
    bound_s: float
    byte_s: float = 0.0


@dataclass(frozen=True)
class StageProblem:
    """What a stage holds and what limits it.

    Attributes:
        model: Costs on the stage's devices.
        chain: The graph.
        blocks: Blocks of this stage.
        first: Whether it holds the head.
        last: Whether it holds the tail.
        in_flight: Microbatches alive at the peak.
        rounds: Microbatches that the step lasts, bubble included.
        modes: Recompute modes to choose from.
        begin: State of the end before the first block; needed unless `first`.
        end: State to end in; free when None.
        shelf: Tables by price, shared by the stages of one model.
        prices: Most prices of a byte to try where memory binds.
    """

    model: CostModel
    chain: Chain
    blocks: int
    first: bool = True
    last: bool = True
    in_flight: float = 1.0
    rounds: float = 0.0
    modes: tuple[Recompute, ...] = (Recompute.NONE,)
    begin: int | None = None
    end: int | None = None
    shelf: dict[Price, Tables] = field(default_factory=dict, repr=False)
    prices: int = PRICES

    def tables(self, price: Price) -> Tables:
        """Tables at a price, from the shelf when there."""
        if price not in self.shelf:
            modes = self.modes if price.per_byte or Recompute.NONE not in self.modes else (Recompute.NONE,)
            self.shelf[price] = Tables(ChainTables(self.model, self.chain, price, modes))
            self.model.price_edges(self.chain.different)
        return self.shelf[price]

    def price(self, per_byte: float) -> Price:
        """Full price; a free byte makes the number in flight irrelevant."""
        return Price(per_byte, in_flight=self.in_flight if per_byte else 1.0, rounds=self.rounds)

    def path(self, price: Price) -> tuple[float, int, list[int]]:
        """Value, context and states of the best path at a price."""
        chain = self.tables(price).of
        start = chain.head if self.first else self._only(self.begin, chain)
        stop = chain.tail if self.last else self._only(self.end, chain)
        return chain.path(start, stop, self.blocks - 1 if self.first else self.blocks)

    def solve(self, price: Price) -> Priced[StagePlan]:
        """The best plan at a price."""
        value, context, states = self.path(price)
        return Priced(value, self._point(self._plan(self.tables(price), context, states)))

    def minimise(self, limit_bytes: float = inf, cutoff_s: float = inf, hint: float = 0.0) -> Fastest:
        """The fastest plan found within the limit.

        Args:
            limit_bytes: Memory of a rank.
            cutoff_s: Seconds to beat.
            hint: A price of a byte that was right for a like problem; tried first, it often rules this one out.

        Raises:
            Infeasible: When nothing fits, with the least memory that would do; or, with infinity, when nothing
                faster than `cutoff_s` can exist.
        """
        free = self.solve(self.price(0.0))
        if free.point.bytes <= limit_bytes:
            return Fastest(free.point, min(free.value, free.point.seconds))
        known = self._bracket(free, limit_bytes, cutoff_s, hint)
        dual = best_price(
            lambda p: self.solve(self.price(p)), known, limit_bytes, rounds=self.prices, cutoff_s=cutoff_s
        )
        return Fastest(self._spliced(dual, limit_bytes), dual.bound_s, dual.price)

    def _bracket(self, free: Priced[StagePlan], limit: float, cutoff_s: float, hint: float) -> Bracket[StagePlan]:
        bound_s, price, heavy, light = free.value, 0.0, free.point, None
        if hint:
            guess = self.solve(self.price(hint))
            bound_s, price = max((bound_s, price), (guess.value - hint * limit, hint))
            heavy, light = (heavy, guess.point) if guess.point.bytes <= limit else (guess.point, None)
        if bound_s >= cutoff_s:
            raise Infeasible(inf)
        light = light or self.lightest()
        if light.bytes > limit:
            raise Infeasible(light.bytes)
        return Bracket(heavy, light, bound_s, price)

    def lightest(self) -> Point[StagePlan]:
        """The plan with the least memory."""
        return self.solve(replace(LIGHTEST, in_flight=self.in_flight, rounds=self.rounds)).point

    def _point(self, plan: StagePlan) -> Point[StagePlan]:
        load = plan.load
        rounds = self.rounds or self.model.microbatches
        return Point(rounds * load.micro_s + load.step_s, load.bytes(self.in_flight), plan)

    def _only(self, state: int | None, chain: ChainTables) -> Floats:
        """Zero at one state (or at all), infinite elsewhere."""
        row = np.full((chain.step.shape[0], chain.step.shape[1]), inf if state is not None else 0.0)
        if state is not None:
            row[:, state] = 0.0
        return row

    def _plan(self, tables: Tables, context: int, states: Sequence[int]) -> StagePlan:
        pieces = [tables.head(context, states[0])] if self.first else []
        pieces += [tables.block(context, a, c) for a, c in pairwise(states)]
        after = states if self.first else states[1:]
        if self.last:
            pieces.append(tables.tail(context, states[-1]))
        return StagePlan(tuple(pieces), tuple((context, state) for state in after), tables)

    def _spliced(self, dual: Dual[StagePlan], limit: float) -> Point[StagePlan]:
        best = dual.best
        for first, second in ((dual.light.what, dual.heavy.what), (dual.heavy.what, dual.light.what)):
            for seconds, held, plan in self._splices(first, second):
                if held <= limit and seconds < best.seconds:
                    best = Point(seconds, held, self._splice(first, second, plan))
        return best

    def _splices(self, first: StagePlan, second: StagePlan) -> Iterator[tuple[float, float, int]]:
        """Seconds and bytes of the first `k` pieces of one plan and the rest of the other, for every k."""
        if first.states[0][0] != second.states[0][0]:
            return
        empty = Load()
        before = list(accumulate((p.load for p in first.pieces), initial=empty))
        after = list(accumulate((p.load for p in reversed(second.pieces)), initial=empty))
        rounds = self.rounds or self.model.microbatches
        for k in range(1, len(first.states)):
            joint = second.source.block(first.states[k - 1][0], first.states[k - 1][1], second.states[k][1])
            load = before[k] + joint.load + after[len(second.pieces) - k - 1]
            yield rounds * load.micro_s + load.step_s, load.bytes(self.in_flight), k

    def _splice(self, first: StagePlan, second: StagePlan, k: int) -> StagePlan:
        joint = second.source.block(first.states[k - 1][0], first.states[k - 1][1], second.states[k][1])
        pieces = (*first.pieces[:k], joint, *second.pieces[k + 1 :])
        return StagePlan(pieces, (*first.states[:k], *second.states[k:]), second.source)
