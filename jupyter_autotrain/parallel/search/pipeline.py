"""One candidate priced in full: how many blocks each stage holds, and the best plan of each stage within its memory.

Recurrence: blocks go one by one to the stage that would end earliest with one more, which minimises max_i t_i for
equal blocks; then T = m max_i t_i + (sum t - max t)/v + once-per-step work (see `cost.pipeline`), each t_i the
least that its stage reaches under the limit with its own number of microbatches alive. Neighbouring stages meet in one
layout, taken from the first stage, which has the least room. Time: at most three stage problems (first, middle, last)
per kind of device.

Source: PipeDream (Narayanan et al. 2019) for the partition, restricted to equal blocks; `stage` for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, prod

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.collectives import gather_s, send_s
from jupyter_autotrain.parallel.cost.layout import REPLICATE, produced, split_of
from jupyter_autotrain.parallel.cost.memory import Recompute, in_flight
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.search.chain import Chain
from jupyter_autotrain.parallel.search.dual import Infeasible
from jupyter_autotrain.parallel.search.imbalance import imbalance_bound_s
from jupyter_autotrain.parallel.search.loads import Choice, Price, op_values
from jupyter_autotrain.parallel.search.outcome import Outcome, Stage
from jupyter_autotrain.parallel.search.pieces import StagePlan, Tables
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.stage import PRICES, StageProblem


@dataclass(frozen=True)
class Pipeline:
    """A candidate on its way to an outcome.

    Attributes:
        models: One cost model per stage; stages on equal devices share one. Made for fewer microbatches, they bound.
        chain: The graph.
        candidate: Outer choices.
        cluster: For the links between stages.
        modes: Recompute modes.
        prices: Most prices of a byte to try in a stage whose memory binds.
    """

    models: Sequence[CostModel]
    chain: Chain
    candidate: Candidate
    cluster: ClusterSpec
    modes: tuple[Recompute, ...]
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
        """No plan of this candidate is faster: all stages even, memory free."""
        return self.whole.path(self.whole.price(0.0))[0] / self._stages_even

    @cached_property
    def staged_bound_s(self) -> float:
        """The same with what the last stage holds beside blocks."""
        alike = len(set(map(id, self.models))) == 1 and self.candidate.stages > 1
        return max(self.bound_s, imbalance_bound_s(self.whole, self.candidate)) if alike else self.bound_s

    def bound_within_s(self, total_bytes: float) -> float:
        """The same when all stages together have `total_bytes` and hold one microbatch each: true for any partition.

        Raises:
            Infeasible: When even that does not fit.
        """
        return max(self.staged_bound_s, self.whole.minimise(total_bytes).bound_s / self._stages_even)

    def best(self, limits: Sequence[float], cutoff_s: float = inf, hint: float = 0.0) -> Outcome:
        """The best plan within each stage's limit.

        Args:
            limits: Bytes per rank, for each stage.
            cutoff_s: Give up (with `Infeasible(inf)`) once nothing faster is possible.
            hint: Seconds that a byte is worth to a like candidate of one stage.

        Raises:
            Infeasible: When some stage fits no way.
        """
        if self.candidate.stages == 1:
            found = self.whole.minimise(limits[0], cutoff_s, hint)
            plan, blocks = found.point.what, range(self.chain.run.count)
            stage = Stage(blocks, self._choices(plan, 0), plan.load, 0.0, 1.0, self._device(0))
            return Outcome(self.candidate, (stage,), found.bound_s, tuple(self.models), found.byte_s)
        least = inf
        for counts in self._partitions():
            try:
                return self._staged(counts, limits, cutoff_s)
            except Infeasible as full:
                least = min(least, full.least_bytes)
        raise Infeasible(least)

    def lightest(self) -> float:
        """Least bytes per rank with which this candidate can run."""
        stages = self.candidate.stages
        if stages == 1:
            return self.whole.lightest().bytes
        counts = self._partitions()[-1]
        begin, most = None, 0.0
        for stage in (0, 1, stages - 1):
            point = self._problem(stage, counts[stage], self._alive(stage), begin=begin).lightest()
            begin = point.what.states[-1][1] if stage == 0 else begin
            most = max(most, point.bytes)
        return most

    def _staged(self, counts: Sequence[int], limits: Sequence[float], cutoff_s: float) -> Outcome:
        candidate, stages, solved = self.candidate, [], {}
        slack = cutoff_s * candidate.rounds / candidate.microbatches
        begin: int | None = None
        first_block = 0
        for index, count in enumerate(counts):
            key = (index == 0, index == len(counts) - 1, count, id(self.models[index]), limits[index])
            if key not in solved:
                problem = self._problem(index, count, self._alive(index), begin=begin)
                solved[key] = problem.minimise(limits[index], slack).point.what
            plan = solved[key]
            begin = plan.states[-1][1] if index == 0 else begin
            assert begin is not None
            stages.append(
                Stage(
                    range(first_block, first_block + count),
                    self._choices(plan, first_block),
                    plan.load,
                    self._send_s(index, begin),
                    self._alive(index),
                    self._device(index),
                )
            )
            first_block += count
        return Outcome(candidate, tuple(stages), self.staged_bound_s, tuple(self.models))

    def _partitions(self) -> list[list[int]]:
        """Blocks per stage: balanced by time, then even."""
        stages, count = self.candidate.stages, self.chain.run.count
        even = [count // stages + (stages - 1 - i < count % stages) for i in range(stages)]
        if self.candidate.chunks > 1:
            return [even]
        balanced = self._balanced()
        return [balanced, even] if balanced != even else [even]

    def _balanced(self) -> list[int]:
        pieces = self.whole.solve(self.whole.price(0.0)).point.what.pieces
        block = pieces[1].load.micro_s if len(pieces) > 2 else pieces[0].load.micro_s
        speed = [
            self._device(0).matrix_flops_per_s / self._device(i).matrix_flops_per_s for i in range(len(self.models))
        ]
        times = [block * s for s in speed]
        times[0] += max(0.0, pieces[0].load.micro_s - block) * speed[0]
        times[-1] += pieces[-1].load.micro_s * speed[-1]
        counts = [1] * len(times)
        for _ in range(self.chain.run.count - len(times)):
            index = min(range(len(times)), key=lambda i: (times[i] + block * speed[i], -i))
            counts[index] += 1
            times[index] += block * speed[index]
        return counts

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

    def _choices(self, plan: StagePlan, first_block: int) -> dict[int, Choice]:
        """Choices by the graph's own op ids: pieces of later blocks are written for block 1."""
        run, found = self.chain.run, {}
        for index, piece in enumerate(plan.pieces):
            first = min(piece.choices, default=0)
            is_block = run.start + run.length <= first < run.start + 2 * run.length
            shift = (first_block + index - 1) * run.length if is_block else 0
            found.update({op + shift: choice for op, choice in piece.choices.items()})
        return found

    def _send_s(self, stage: int, end: int) -> float:
        """Messages of one microbatch at a stage's borders, both ways; half at the pipeline's ends.

        What several ranks hold alike each sends a slice of, to be gathered behind the border (Narayanan et al. 2021,
        section 4.1).
        """
        model, total = self.models[stage], 0.0
        span = self.cluster.segments(model.mesh.devices, self.candidate.stages)
        sizes = [len(model.op(op).table) for op in self.chain.end(0)]
        for position, op in enumerate(self.chain.end(0)):
            row = end // prod(sizes[position + 1 :]) % sizes[position]
            table = model.op(op)
            for out in table.op.outputs:
                placed = produced(table.op, out, table.table)[row]
                held = model.tensor_bytes(out.tensor) / float(split_of(placed[None], model.axes)[0])
                alike = [axis for axis, code in zip(model.axes, placed.tolist(), strict=True) if code == REPLICATE]
                sliced = send_s(span, held / prod(axis.size for axis in alike))
                sliced += sum(float(gather_s(axis, held)) for axis in alike)
                total += min(send_s(span, held), sliced)
        borders = 1 if stage in {0, self.candidate.stages - 1} else 2
        return total * borders * self.candidate.chunks
