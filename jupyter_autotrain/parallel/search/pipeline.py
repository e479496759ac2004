"""One candidate priced in full: how many blocks each stage holds, and the best plan of each stage within its memory.

Recurrence: T = m max_i t_i + (sum t - max t)/v + once-per-step work (see `cost.pipeline`), each t_i the least that its
stage reaches under the limit with its own number of microbatches alive, the blocks shared out evenly, then as the bound
over all partitions has them (see `staging`; by speed where devices differ). Neighbouring stages meet in one layout,
taken from the first stage, which has the least room. Time: at most three stage problems (first, middle, last) per kind
of device and partition.

Source: PipeDream (Narayanan et al. 2019) for the partition, restricted to equal blocks; `stage` for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.memory import Recompute, in_flight
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.pipeline import border_s
from jupyter_autotrain.parallel.search.chain import Chain
from jupyter_autotrain.parallel.search.dual import Infeasible
from jupyter_autotrain.parallel.search.loads import Price, op_values
from jupyter_autotrain.parallel.search.outcome import Outcome, Stage
from jupyter_autotrain.parallel.search.pieces import Tables
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.stage import PRICES, Fastest, StageProblem
from jupyter_autotrain.parallel.search.staging import Staging, by_speed, computing_s


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
    def rounds(self) -> float:
        """Times that the models' part of the batch is computed in a step, bubble included."""
        return self.candidate.rounds * self.models[0].microbatches / self.candidate.microbatches

    @cached_property
    def whole(self) -> StageProblem:
        """The whole chain on one stage's devices, those with the fastest products where they differ."""
        rates = [model.roofline.device.matrix_flops_per_s for model in self.models]
        return self._problem(rates.index(max(rates)), self.chain.run.count, 1.0, whole=True)

    @property
    def _stages_even(self) -> float:
        """What shares the work of `whole`; infinite, so that nothing is promised, if another device is faster at it."""
        rates = [model.roofline.device.memory_bytes_per_s for model in self.models]
        return self.candidate.stages if self.whole.model.roofline.device.memory_bytes_per_s == max(rates) else inf

    @cached_property
    def split_bound_s(self) -> float:
        """The same without any change of layout between ops; cheaper, since it needs no edge."""
        chain, model = self.chain, self.whole.model
        price = self.whole.price(0.0)

        model.price_ops((*chain.head, *chain.block(0), *chain.tail))

        def least(ops: Iterable[int]) -> float:
            return sum(float(op_values(model, model.op(op), Recompute.NONE, price).min(initial=inf)) for op in ops)

        total = least((*chain.head, *chain.tail)) + chain.run.count * least(chain.block(0))
        return total / self._stages_even

    @cached_property
    def bound_s(self) -> float:
        """No plan of this candidate is faster: all stages even, memory free, the bubble of kernels alone.

        So priced, all schedules of a mesh share its tables.
        """
        model, run = self.whole.model, self.chain.run
        ends_s, block_s = (
            computing_s(model, ops) for ops in ((*self.chain.head, *self.chain.tail), self.chain.block(0))
        )
        bubble_s = (self.rounds - model.microbatches) * (ends_s + run.count * block_s)
        return (self.whole.path(Price(rounds=float(model.microbatches)))[0] + bubble_s) / self._stages_even

    @cached_property
    def staged_bound_s(self) -> float:
        """The same with what the last stage holds beside blocks."""
        return max(self.bound_s, self._staging.bound_s()) if self._staging else self.bound_s

    def bound_within_s(self, byte_s: float) -> float:
        """The same within each stage's memory, if a byte is worth so many seconds; true for any worth."""
        return max(self.staged_bound_s, self._staging.bound_s(byte_s)) if self._staging else self.staged_bound_s

    @cached_property
    def byte_s(self) -> float:
        """What a byte is worth to the first of several even stages, which has the least room; 0 if none or too much."""
        try:
            return self._problem(0, self._even[0], self._alive(0)).minimise(self.limits[0]).byte_s
        except Infeasible:
            return 0.0

    def best(self, cutoff_s: float = inf, hint: float = 0.0) -> Outcome:
        """The best plan within each stage's limit.

        Args:
            cutoff_s: Give up (with `Infeasible(inf)`) once nothing faster is possible.
            hint: Seconds that a byte is worth to a like candidate.

        Raises:
            Infeasible: When some stage fits no way, in any of the partitions tried.
        """
        if self.candidate.stages == 1:
            found = self.whole.minimise(self.limits[0], cutoff_s, hint)
            plan, blocks = found.point.what, range(self.chain.run.count)
            stage = Stage(blocks, plan.choices(self.chain.run, 0), plan.load, 0.0, 1.0, self._device(0))
            return Outcome(self.candidate, (stage,), found.bound_s, tuple(self.models), found.byte_s)
        even, full = self._tried(self._even, cutoff_s, hint)
        if self.candidate.chunks > 1:
            if not even:
                raise Infeasible(full, proved=full < inf)
            return even
        counts = self._staging.partition(even.byte_s if even else hint) if self._staging else self._by_speed()
        other, less_full = self._tried(counts, min(cutoff_s, even.step_s) if even else cutoff_s, hint)
        if even and other:
            return min(even, other, key=lambda outcome: outcome.step_s)
        return even or other or self._fitting(min(full, less_full), cutoff_s, hint)

    def _tried(self, counts: Sequence[int], cutoff_s: float, hint: float) -> tuple[Outcome | None, float]:
        """A partition's outcome, or the least memory that would do."""
        try:
            return self._staged(counts, cutoff_s, hint), inf
        except Infeasible as full:
            return None, full.least_bytes

    def _fitting(self, least_bytes: float, cutoff_s: float, hint: float) -> Outcome:
        """Where no better partition fits, one with as many blocks on each stage as its memory seems to allow."""
        if not self._staging or least_bytes == inf:
            raise Infeasible(least_bytes, proved=False)
        counts = self._staging.fitting()
        if not counts:
            raise Infeasible(least_bytes)
        outcome, still_full = self._tried(counts, cutoff_s, hint)
        if not outcome:
            raise Infeasible(min(least_bytes, still_full), proved=False)
        return outcome

    def _staged(self, counts: Sequence[int], cutoff_s: float, hint: float) -> Outcome:
        candidate, limits, stages = self.candidate, self.limits, list[Stage]()
        solved: dict[object, Fastest] = {}
        slack = cutoff_s * candidate.rounds / candidate.microbatches
        begin: int | None = None
        first_block = 0
        for index, count in enumerate(counts):
            key = (index == 0, index == len(counts) - 1, count, id(self.models[index]), limits[index])
            if key not in solved:
                problem = self._problem(index, count, self._alive(index), begin=begin)
                solved[key] = problem.minimise(limits[index], slack, hint)
                hint = solved[key].byte_s
            plan = solved[key].point.what
            begin = plan.states[-1][1] if index == 0 else begin
            assert begin is not None
            stages.append(
                Stage(
                    range(first_block, first_block + count),
                    plan.choices(self.chain.run, first_block),
                    plan.load,
                    self._send_s(index, begin),
                    self._alive(index),
                    self._device(index),
                )
            )
            first_block += count
        byte_s = max(fastest.byte_s for fastest in solved.values())
        return Outcome(candidate, tuple(stages), self.staged_bound_s, tuple(self.models), byte_s)

    @cached_property
    def _even(self) -> list[int]:
        stages, count = self.candidate.stages, self.chain.run.count
        return [count // stages + (stages - 1 - i < count % stages) for i in range(stages)]

    @cached_property
    def _staging(self) -> Staging | None:
        """What is known of partitions where all stages are on equal devices."""
        stages = self.candidate.stages
        if stages == 1 or len(set(map(id, self.models))) > 1:
            return None
        return Staging(self.whole, self.candidate, tuple(map(self._alive, range(stages))), min(self.limits))

    def _by_speed(self) -> list[int]:
        """Blocks per stage where devices differ."""
        pieces = self.whole.solve(self.whole.price(0.0)).point.what.pieces
        block_s = pieces[1].load.micro_s if len(pieces) > 2 else pieces[0].load.micro_s
        first_s, last_s = max(0.0, pieces[0].load.micro_s - block_s), pieces[-1].load.micro_s
        rates = [self._device(stage).matrix_flops_per_s for stage in range(len(self.models))]
        slowness = [max(rates) / rate for rate in rates]
        beside_s = [first_s * slowness[0], *[0.0] * (len(rates) - 2), last_s * slowness[-1]]
        return by_speed([block_s * slow for slow in slowness], beside_s, self.chain.run.count)

    def _problem(
        self, stage: int, blocks: int, alive: float, *, whole: bool = False, begin: int | None = None
    ) -> StageProblem:
        model = self.models[stage]
        last = stage == len(self.models) - 1
        return StageProblem(
            model,
            self.chain,
            blocks,
            first=whole or stage == 0,
            last=whole or last,
            in_flight=alive,
            rounds=self.rounds,
            modes=self.modes,
            begin=begin,
            end=None if whole else begin,
            shelf=self._shelves.setdefault(id(model), {}),
            prices=self.prices,
        )

    def _alive(self, stage: int) -> float:
        c = self.candidate
        return in_flight(c.schedule, c.stages, stage, c.microbatches, c.chunks)

    def _device(self, stage: int) -> Device:
        return self.models[stage].roofline.device

    def _send_s(self, stage: int, end: int) -> float:
        """Messages of one microbatch at a stage's borders, both ways; half at the pipeline's ends."""
        model, ends = self.models[stage], self.chain.end(0)
        rows = np.unravel_index(end, [len(model.op(op).table) for op in ends])
        span = self.cluster.segments(model.mesh.devices, self.candidate.stages)
        borders = 1 if stage in {0, self.candidate.stages - 1} else 2
        return border_s(model, span, dict(zip(ends, map(int, rows), strict=True))) * borders * self.candidate.chunks
