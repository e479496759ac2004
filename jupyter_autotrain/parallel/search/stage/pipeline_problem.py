"""A candidate's stage problems, and lower bounds on its step.

Variables: as `partition_solver`.
Objective: a lower bound on T = m max t + (sum t - max t)/v + once-per-step work, over all plans of the candidate.
Constraints: memory is left out, but for `bound_within_s`.
Recurrence: with P the least path through the whole chain at m rounds, p stages, v chunks and C the least compute of one
    microbatch,

    T >= (P + (p-1)/v C) / p

    since T is least with even stages. Cheaper bounds leave out changes of layout, everywhere or in the first block.
Complexity: one reduction of a block per multiplier.
Source: the time of a pipeline as in `cost.pipeline`; the rest is elementary.
Oracle: tests/oracle/test_search_staging.py::test_no_partition_beats_the_bound_at_any_multiplier
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from math import inf

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.memory import Recompute, in_flight
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.table_cache import TableCache
from jupyter_autotrain.parallel.search.factors.factors import NO_RECOMPUTE, LagrangianWeights, op_values
from jupyter_autotrain.parallel.search.factors.lagrangian import NoPlan
from jupyter_autotrain.parallel.search.request.request import Candidate
from jupyter_autotrain.parallel.search.stage.chain import Chain
from jupyter_autotrain.parallel.search.stage.folding import ChainTables
from jupyter_autotrain.parallel.search.stage.partition_bounds import PartitionBounds, computing_s
from jupyter_autotrain.parallel.search.stage.stage_problem import MULTIPLIERS, StageProblem


class _Bound(Enum):
    """Bounds on the step of a candidate, memory left out, cheapest first."""

    WITHOUT_REDISTRIBUTION = auto()
    LATER_BLOCKS = auto()
    EVEN = auto()
    PARTITION = auto()


@dataclass(frozen=True, slots=True)
class _BoundKey:
    """A bound of a candidate."""

    candidate: Candidate
    bound: _Bound


@dataclass(frozen=True, slots=True)
class _MultiplierKey:
    """The multiplier of a candidate's first stage within a limit."""

    candidate: Candidate
    limit_bytes: float


@dataclass(frozen=True)
class PipelineProblem:
    """A candidate as stages to solve.

    Attributes:
        models: One cost model per stage; stages on equal devices share one. Made for fewer microbatches, they bound.
        chain: The graph.
        candidate: Outer choices.
        cluster: For the links between stages.
        modes: Recompute modes.
        limits: Bytes per rank, for each stage.
        cache: Where its tables and bounds are kept.
        most_multipliers: Most multipliers to try in a stage whose memory binds.
    """

    models: Sequence[CostModel]
    chain: Chain
    candidate: Candidate
    cluster: ClusterSpec
    modes: tuple[Recompute, ...]
    limits: Sequence[float]
    cache: TableCache = field(repr=False, compare=False)
    most_multipliers: int = MULTIPLIERS

    @property
    def reductions(self) -> int:
        """Tables made so far, each a reduction of a block."""
        return self.cache.count(ChainTables)

    @property
    def rounds(self) -> float:
        """Times that the models' part of the batch is computed in a step, bubble included."""
        return self.candidate.rounds * self.models[0].microbatches / self.candidate.microbatches

    def full_chain(self) -> StageProblem:
        """Return the whole chain on one stage's devices, those with the fastest products where they differ."""
        rates = [model.roofline.device.matrix_flops_per_s for model in self.models]
        fastest = rates.index(max(rates))
        blocks = self.chain.run.count
        model = self.models[fastest]
        return StageProblem(
            model,
            self.chain,
            blocks,
            self.cache,
            rounds=self.rounds,
            modes=self.modes,
            most_multipliers=self.most_multipliers,
        )

    def _stages_even(self) -> float:
        """Stages that share `full_chain`; infinite, so that the bound is 0, if another device has faster memory."""
        rates = [model.roofline.device.memory_bytes_per_s for model in self.models]
        return (
            self.candidate.stages if self.full_chain().model.roofline.device.memory_bytes_per_s == max(rates) else inf
        )

    def without_redistribution_bound_s(self) -> float:
        """Return the same without any change of layout between ops; cheaper, since it needs no edge."""
        return self._once(_Bound.WITHOUT_REDISTRIBUTION, self._without_redistribution_bound_s)

    def _without_redistribution_bound_s(self) -> float:
        chain = self.chain
        weights = self.full_chain().weights(0.0)
        self.full_chain().model.price_ops((*chain.head, *chain.block(0), *chain.tail))
        ends, block = (self._least(ops, weights) for ops in ((*chain.head, *chain.tail), chain.block(0)))
        return (ends + chain.run.count * block) / self._stages_even()

    def blocks_bound_s(self) -> float:
        """Get the same with changes of layout in all blocks but the first; cheaper, since the head is not reduced."""
        return self._once(_Bound.LATER_BLOCKS, self._blocks_bound_s)

    def _blocks_bound_s(self) -> float:
        chain = self.chain
        weights = LagrangianWeights(rounds=float(self.full_chain().model.microbatches))
        later = replace(self.full_chain(), first=False, blocks=chain.run.count - 1)
        value = self._least((*chain.head, *chain.block(0)), weights) + later.path(weights)[0]
        return (value + self._bubble_s()) / self._stages_even()

    def _once(self, bound: _Bound, work_out: Callable[[], float]) -> float:
        def make() -> float:
            return work_out() if self.full_chain().model.splits_every_op() else inf

        return self.cache.get(float, _BoundKey(self.candidate, bound), make)

    def _least(self, ops: Iterable[int], weights: LagrangianWeights) -> float:
        """Sum of what each op costs at least, wherever its tensors lie."""
        model = self.full_chain().model
        return sum(float(op_values(model, model.op(op), NO_RECOMPUTE, weights).min(initial=inf)) for op in ops)

    def _bubble_s(self) -> float:
        """Compute of the rounds in which a stage waits."""
        model = self.full_chain().model
        chain = self.chain
        ends_s, block_s = (computing_s(model, ops) for ops in ((*chain.head, *chain.tail), chain.block(0)))
        return (self.rounds - model.microbatches) * (ends_s + chain.run.count * block_s)

    def bound_s(self) -> float:
        """No plan of this candidate is faster: all stages even, memory free, the bubble of kernels alone.

        So costed, all schedules of a mesh share its tables.
        """
        return self._once(_Bound.EVEN, self._even_bound_s)

    def _even_bound_s(self) -> float:
        value = self.full_chain().path(LagrangianWeights(rounds=float(self.full_chain().model.microbatches)))[0]
        return (value + self._bubble_s()) / self._stages_even()

    def partition_bound_s(self) -> float:
        """Return the same with the tail of the last stage."""
        bounds = self.partition_bounds()
        if bounds is None:
            return self.bound_s()
        return self._once(_Bound.PARTITION, lambda: max(self.bound_s(), bounds.bound_s()))

    def bound_within_s(self, multiplier: float) -> float:
        """Return the same within each stage's memory; any multiplier gives a valid bound."""
        bounds = self.partition_bounds()
        if bounds is None:
            return self.partition_bound_s()
        return max(self.partition_bound_s(), bounds.bound_s(multiplier))

    def multiplier(self) -> float:
        """Return the multiplier of the first of several even stages, which has the least room; 0 where nothing fits."""
        return self.cache.get(float, _MultiplierKey(self.candidate, self.limits[0]), self._first_multiplier)

    def _first_multiplier(self) -> float:
        try:
            return self.problem(0, self.even_partition()[0]).minimise(self.limits[0]).multiplier
        except NoPlan:
            return 0.0

    def even_partition(self) -> list[int]:
        """Blocks per stage, shared out evenly; odd ones to the last stages."""
        stages = self.candidate.stages
        count = self.chain.run.count
        return [count // stages + (stages - 1 - i < count % stages) for i in range(stages)]

    def partition_bounds(self) -> PartitionBounds | None:
        """Return what is known of partitions where all stages are on equal devices."""
        stages = self.candidate.stages
        if stages == 1 or len(set(self.models)) > 1:
            return None
        alive = tuple(map(self.alive, range(stages)))
        return PartitionBounds(self.full_chain(), self.candidate, alive, min(self.limits), self.cache)

    def problem(self, stage: int, blocks: int, begin: int | None = None, end: int | None = None) -> StageProblem:
        """Return a stage with so many blocks between two layouts; it ends where it begins unless `end` is given."""
        return replace(
            self.full_chain(),
            model=self.models[stage],
            blocks=blocks,
            first=stage == 0,
            last=stage == len(self.models) - 1,
            in_flight=self.alive(stage),
            begin=begin,
            end=begin if end is None else end,
        )

    def alive(self, stage: int) -> float:
        """Microbatches that a stage holds at its peak."""
        c = self.candidate
        return in_flight(c.schedule, c.stages, stage, c.microbatches, c.chunks)

    def device(self, stage: int) -> Device:
        """Return what a stage computes on."""
        return self.models[stage].roofline.device
