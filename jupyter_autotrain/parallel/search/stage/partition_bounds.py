"""Partitions of the blocks over a pipeline's stages: a bound over all partitions, and the partition that reaches it.

Variables: n_i, the blocks of stage i.
Objective: minimise the step T = m max t + (sum t - max t)/v + once-per-step work, for times t of m microbatches.
Constraints: sum_i n_i = blocks; each stage within its memory L, with a_i microbatches alive.
Recurrence: for any one stage i

    T >= m t_i + once_i + (least compute of all other stages)/v,   and at any multiplier y
    f_i(n) >= min over paths of (m micro_s + step_s + y (state_bytes + a_i act_bytes)) - y L

    with f_i(n) the least of a stage with n blocks, whatever lies at their ends. As a minimum of lines in a_i this is
    concave, so two numbers alive bound all between. The bound is the least T at which the stages hold all blocks.
Complexity: one reduction of a block per multiplier and number alive, one row of path values, and a bisection (see
    `partition`). Rows end a little over an even share; past its end a stage is taken to hold everything, which is safe.
Source: the time of a pipeline as in `cost.pipeline`; weak duality as in `lagrangian`.
Oracle: tests/oracle/test_search_staging.py::test_no_partition_beats_the_bound_at_any_multiplier
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import ceil, inf

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.table_cache import TableCache
from jupyter_autotrain.parallel.search.factors.factors import LagrangianWeights
from jupyter_autotrain.parallel.search.factors.lagrangian import SLACK
from jupyter_autotrain.parallel.search.request.request import Candidate
from jupyter_autotrain.parallel.search.stage.folding import step_back, step_forward
from jupyter_autotrain.parallel.search.stage.partition import minimax_level, minimax_partition
from jupyter_autotrain.parallel.search.stage.stage_problem import StageProblem

ROOM = 1.5  # at first; few stages want more


@dataclass(frozen=True, slots=True)
class _PathRowsKey:
    """Least values of paths, by the number of blocks."""

    candidate: Candidate
    room: float
    weights: LagrangianWeights


@dataclass(frozen=True, slots=True)
class _OtherStagesKey:
    """Compute of all other stages, by the number of blocks."""

    candidate: Candidate
    room: float


@dataclass(frozen=True)
class PartitionBounds:
    """The partitions of a candidate whose stages are on equal devices.

    Attributes:
        full_chain: The chain on one stage's devices.
        candidate: Outer choices, with several stages.
        alive: Microbatches alive at the peak, by stage.
        limit_bytes: Memory of a rank.
        cache: Where rows are kept, for this candidate.
        room: Most blocks of a stage that are counted, over its even share.
    """

    full_chain: StageProblem
    candidate: Candidate
    alive: tuple[float, ...]
    limit_bytes: float
    cache: TableCache = field(repr=False, compare=False)
    room: float = ROOM

    def bound_s(self, multiplier: float = 0.0) -> float:
        """No plan of this candidate is faster; any `multiplier` gives a valid bound, 0 leaves memory out."""
        return self._level(self._times(multiplier))

    def partition(self, multiplier: float = 0.0) -> list[int] | None:
        """Blocks per stage behind that bound; None where no stage can hold any."""
        counts = self._shared(self._times(multiplier))
        return counts if counts or self._is_wide else self._wider().partition(multiplier)

    def fitting(self, multiplier: float = 0.0) -> list[int] | None:
        """Return the same, no stage with more blocks than the bound of its lightest plan allows; None: nothing fits."""
        held = self._lightest()
        limit_bytes = self.limit_bytes * (1 + SLACK)
        if self._level(held) > limit_bytes:
            return None
        times = np.where(held <= limit_bytes, self._times(multiplier), np.inf)
        counts = self._shared(times)
        return counts if counts or self._is_wide else self._wider().fitting(multiplier)

    def lightest(self) -> list[int] | None:
        """Blocks per stage where the fullest stage is as light as can be; None where no stage can hold any."""
        counts = self._shared(self._lightest())
        return counts if counts or self._is_wide else self._wider().lightest()

    def _shared(self, values: Floats) -> list[int] | None:
        """All blocks, where the greatest value is least; None when the rows end too early to tell."""
        if self.candidate.chunks > 1:
            return [self._blocks // self.candidate.stages] * self.candidate.stages
        if not self._is_wide and self._level(values) < minimax_level(values, self._blocks):
            return None
        return minimax_partition(values, self._blocks)

    def _wider(self) -> PartitionBounds:
        """Return the same with rows as long as they can be; seldom needed."""
        return replace(self, room=inf)

    @property
    def _is_wide(self) -> bool:
        return self._counted == self._most_blocks

    @property
    def _most_blocks(self) -> int:
        """Most blocks of a stage, if every other one has one."""
        return self._blocks - self.candidate.stages + 1

    def _lightest(self) -> Floats:
        """(stages, blocks) bytes at least."""
        return self._between(LagrangianWeights(multiplier=1.0, time_weight=0.0))

    @property
    def _blocks(self) -> int:
        return self.full_chain.chain.run.count

    @property
    def _counted(self) -> int:
        """Most blocks of a stage that are looked at."""
        looked_at = self.room * self._blocks / self.candidate.stages + 1
        return self._most_blocks if looked_at >= self._most_blocks else ceil(looked_at)

    def _times(self, multiplier: float) -> Floats:
        """(stages, blocks) seconds of a step at least, if a stage holds so many blocks."""
        least = self._paths(LagrangianWeights(rounds=float(self.candidate.microbatches)))
        if multiplier:
            weights = LagrangianWeights(multiplier, rounds=float(self.candidate.microbatches))
            least = np.maximum(least, self._between(weights) - multiplier * self.limit_bytes)
        return least + self._others_s()

    def _between(self, weights: LagrangianWeights) -> Floats:
        """(stages, blocks) least value at some weights, each stage with its own number alive."""
        few = min(self.alive)
        many = max(self.alive)
        low = self._paths(replace(weights, in_flight=few))
        if many == few:
            return low
        high = self._paths(replace(weights, in_flight=many))
        share = (np.array(self.alive) - few) / (many - few)
        return np.asarray(low + share[:, None] * (high - low))

    def _paths(self, weights: LagrangianWeights) -> Floats:
        """(stages, blocks) least value of a path, the head before the first stage and the tail behind the last."""
        return self.cache.get(
            np.ndarray, _PathRowsKey(self.candidate, self.room, weights), lambda: self._all_paths(weights)
        )

    def _all_paths(self, weights: LagrangianWeights) -> Floats:
        tables = self.full_chain.tables(weights)
        step = tables.step().costs
        first = tables.head().costs
        last = tables.tail().costs
        middle = np.zeros_like(last)
        found = [(0.0, 0.0, 0.0)]
        for count in range(self._counted):
            first = step_forward(first, step) if count else first
            middle = step_forward(middle, step)
            last = step_back(step, last)
            found.append((float(first.min()), float(middle.min()), float(last.min())))
        rows = np.array(found).T
        return np.stack([rows[0], *[rows[1]] * (self.candidate.stages - 2), rows[2]])

    def _others_s(self) -> Floats:
        """(stages, blocks) compute of all other stages that is not hidden behind this one."""
        return self.cache.get(np.ndarray, _OtherStagesKey(self.candidate, self.room), self._compute_of_others_s)

    def _compute_of_others_s(self) -> Floats:
        chain = self.full_chain.chain
        model = self.full_chain.model
        stages = self.candidate.stages
        blocks = (self._blocks - np.arange(self._counted + 1)) * computing_s(model, chain.block(0))
        ends = np.full(stages, computing_s(model, chain.head) + computing_s(model, chain.tail))
        ends[0] -= computing_s(model, chain.head)
        ends[-1] -= computing_s(model, chain.tail)
        return np.asarray((ends[:, None] + blocks[None, :]) / self.candidate.chunks)

    def _level(self, values: Floats) -> float:
        """Return the least value up to which the stages hold all blocks, at least.

        Past the end of a row nothing is known.
        """
        if self.candidate.chunks > 1:
            return float(values[:, self._blocks // self.candidate.stages].max())
        return minimax_level(values, self._blocks, tail_capacity=self._blocks)


def computing_s(model: CostModel, ops: Iterable[int]) -> float:
    """Seconds of one microbatch on the fastest strategy of each op, nothing else counted."""
    tables = list(map(model.op, ops))
    return sum(float((table.forward_s + table.backward_s).min()) for table in tables)
