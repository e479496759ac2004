"""A candidate on its way to a plan: its stages' problems, and bounds that no plan of it beats.

Recurrence: with P the least path through the whole chain at m rounds, p stages, v chunks and C the least compute of one
microbatch,

    T >= (P + (p-1)/v C) / p

since T = m max t + (sum t - max t)/v + once-per-step work is at least what it is with even stages. What the last stage
holds beside blocks, and memory, are in `staging`. Time: one reduction of a block for each price.

Source: the time of a pipeline as in `cost.pipeline`; the rest is elementary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.memory import Recompute, in_flight
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.search.chain import Chain
from jupyter_autotrain.parallel.search.dual import Infeasible
from jupyter_autotrain.parallel.search.loads import PLAIN, Price, op_values
from jupyter_autotrain.parallel.search.pieces import Tables
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.stage import PRICES, StageProblem
from jupyter_autotrain.parallel.search.staging import Staging, computing_s


@dataclass(frozen=True)
class Pipeline:
    """A candidate on its way to an outcome.

    Attributes:
        models: One cost model per stage; stages on equal devices share one. Made for fewer microbatches, they bound.
        chain: The graph.
        candidate: Outer choices.
        cluster: For the links between stages.
        modes: Recompute modes.
        limits: Bytes per rank, for each stage.
        prices: Most prices of a byte to try in a stage whose memory binds.
    """

    models: Sequence[CostModel]
    chain: Chain
    candidate: Candidate
    cluster: ClusterSpec
    modes: tuple[Recompute, ...]
    limits: Sequence[float]
    prices: int = PRICES
    _shelves: dict[int, dict[Price, Tables]] = field(default_factory=dict, repr=False)

    @property
    def reductions(self) -> int:
        """Tables made so far, each a reduction of a block."""
        return sum(map(len, self._shelves.values()))

    @property
    def rounds(self) -> float:
        """Times that the models' part of the batch is computed in a step, bubble included."""
        return self.candidate.rounds * self.models[0].microbatches / self.candidate.microbatches

    @cached_property
    def whole(self) -> StageProblem:
        """The whole chain on one stage's devices, those with the fastest products where they differ."""
        rates = [model.roofline.device.matrix_flops_per_s for model in self.models]
        fastest, blocks = rates.index(max(rates)), self.chain.run.count
        model, shelf = self.models[fastest], self._shelf(fastest)
        return StageProblem(
            model, self.chain, blocks, rounds=self.rounds, modes=self.modes, shelf=shelf, prices=self.prices
        )

    @property
    def _stages_even(self) -> float:
        """What shares the work of `whole`; infinite, so that nothing is promised, if another device is faster at it."""
        rates = [model.roofline.device.memory_bytes_per_s for model in self.models]
        return self.candidate.stages if self.whole.model.roofline.device.memory_bytes_per_s == max(rates) else inf

    @cached_property
    def split_bound_s(self) -> float:
        """The same without any change of layout between ops; cheaper, since it needs no edge."""
        chain, price = self.chain, self.whole.price(0.0)
        self.whole.model.price_ops((*chain.head, *chain.block(0), *chain.tail))
        ends, block = (self._least(ops, price) for ops in ((*chain.head, *chain.tail), chain.block(0)))
        return (ends + chain.run.count * block) / self._stages_even

    @cached_property
    def blocks_bound_s(self) -> float:
        """The same with changes of layout in all blocks but the first; cheaper, since the head is not reduced."""
        chain, price = self.chain, Price(rounds=float(self.whole.model.microbatches))
        later = replace(self.whole, first=False, blocks=chain.run.count - 1)
        value = self._least((*chain.head, *chain.block(0)), price) + later.path(price)[0]
        return (value + self._bubble_s) / self._stages_even

    def _least(self, ops: Iterable[int], price: Price) -> float:
        """Sum of what each op costs at least, wherever its tensors lie."""
        model = self.whole.model
        return sum(float(op_values(model, model.op(op), PLAIN, price).min(initial=inf)) for op in ops)

    @property
    def _bubble_s(self) -> float:
        """Compute of the rounds in which a stage waits."""
        model, chain = self.whole.model, self.chain
        ends_s, block_s = (computing_s(model, ops) for ops in ((*chain.head, *chain.tail), chain.block(0)))
        return (self.rounds - model.microbatches) * (ends_s + chain.run.count * block_s)

    @cached_property
    def bound_s(self) -> float:
        """No plan of this candidate is faster: all stages even, memory free, the bubble of kernels alone.

        So priced, all schedules of a mesh share its tables.
        """
        value = self.whole.path(Price(rounds=float(self.whole.model.microbatches)))[0]
        return (value + self._bubble_s) / self._stages_even

    @cached_property
    def staged_bound_s(self) -> float:
        """The same with what the last stage holds beside blocks."""
        return max(self.bound_s, self.staging.bound_s()) if self.staging else self.bound_s

    def bound_within_s(self, byte_s: float) -> float:
        """The same within each stage's memory, if a byte is worth so many seconds; true for any worth."""
        return max(self.staged_bound_s, self.staging.bound_s(byte_s)) if self.staging else self.staged_bound_s

    @cached_property
    def byte_s(self) -> float:
        """What a byte is worth to the first of several even stages, which has the least room; 0 if none or too much."""
        try:
            return self.problem(0, self.even[0]).minimise(self.limits[0]).byte_s
        except Infeasible:
            return 0.0

    @cached_property
    def even(self) -> list[int]:
        """Blocks per stage, shared out evenly; odd ones to the last stages."""
        stages, count = self.candidate.stages, self.chain.run.count
        return [count // stages + (stages - 1 - i < count % stages) for i in range(stages)]

    @cached_property
    def staging(self) -> Staging | None:
        """What is known of partitions where all stages are on equal devices."""
        stages = self.candidate.stages
        if stages == 1 or len(set(map(id, self.models))) > 1:
            return None
        return Staging(self.whole, self.candidate, tuple(map(self.alive, range(stages))), min(self.limits))

    def problem(self, stage: int, blocks: int, begin: int | None = None, end: int | None = None) -> StageProblem:
        """A stage with so many blocks between two layouts; ends where it begins unless told otherwise."""
        return replace(
            self.whole,
            model=self.models[stage],
            blocks=blocks,
            first=stage == 0,
            last=stage == len(self.models) - 1,
            in_flight=self.alive(stage),
            begin=begin,
            end=begin if end is None else end,
            shelf=self._shelf(stage),
        )

    def _shelf(self, stage: int) -> dict[Price, Tables]:
        return self._shelves.setdefault(id(self.models[stage]), {})

    def alive(self, stage: int) -> float:
        """Microbatches that a stage holds at its peak."""
        c = self.candidate
        return in_flight(c.schedule, c.stages, stage, c.microbatches, c.chunks)

    def device(self, stage: int) -> Device:
        """What a stage computes on."""
        return self.models[stage].roofline.device
