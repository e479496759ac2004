"""The cost of a uniform plan: a sum over its ops, for all ways to keep parameters and all recompute modes in one go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats
from jupyter_autotrain.parallel.cost.activations import MODES
from jupyter_autotrain.parallel.cost.memory import Recompute, in_flight
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.pipeline import p2p_s
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.search.factors.factors import CostBreakdown, OpChoice
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.request.request import Candidate
from jupyter_autotrain.parallel.search.stage.outcome import Stage


@dataclass(frozen=True)
class StageShares:
    """The stages of a candidate: what each costs, by state sharding, recompute mode and field of `CostBreakdown`."""

    context: SearchContext
    candidate: Candidate
    models: Sequence[CostModel]
    modes: tuple[Recompute, ...]
    loads: Floats

    @classmethod
    def of(cls, context: SearchContext, candidate: Candidate) -> StageShares:
        """Price the stages of a candidate, in which each op has one strategy."""
        models = context.models(candidate)
        loads = [_stage_load(context, candidate, stage, model) for stage, model in enumerate(models)]
        return cls(context, candidate, models, context.modes, np.stack(loads))

    def micro_s(self) -> Floats:
        """(stages, state shardings, modes) seconds of a microbatch with its messages."""
        return np.asarray(self.loads[..., 0] + self.loads[..., 1] + self.sends_s()[:, None, None])

    def sends_s(self) -> Floats:
        """Seconds of the messages of one microbatch at each stage's borders."""
        candidate = self.candidate
        if candidate.stages == 1 or self.context.chain is None:
            return np.zeros(1)
        span = self.context.cluster.link_groups(candidate.mesh.devices, candidate.stages)
        rows = dict.fromkeys(self.context.chain.end(0), 0)
        borders = np.full(candidate.stages, 2.0)
        borders[[0, -1]] = 1.0
        return borders * candidate.chunks * [p2p_s(model, span, rows) for model in self.models]

    def step_s(self) -> Floats:
        """(state shardings, modes) seconds of a step."""
        once = (self.loads[..., 2] + self.loads[..., 3]).max(axis=0)
        micro = self.micro_s()
        slowest = micro.max(axis=0)
        rest = (micro.sum(axis=0) - slowest) / self.candidate.chunks
        return np.asarray(self.candidate.microbatches * slowest + rest + once)

    def bytes(self) -> Floats:
        """(stages, state shardings, modes) bytes of a rank at its peak."""
        states = self.loads[..., 4:7].sum(axis=-1)
        return np.asarray(states + self.alive()[:, None, None] * self.loads[..., 7])

    def alive(self) -> Floats:
        """Microbatches that each stage holds at its peak."""
        c = self.candidate
        return np.array([in_flight(c.schedule, c.stages, i, c.microbatches, c.chunks) for i in range(c.stages)])

    def limits(self) -> Floats:
        """Bytes per rank of each stage, to compare with `bytes`."""
        return np.array(self.context.limits(self.candidate))[:, None, None]

    def stages(self, row: int, column: int, states: StateSharding) -> Iterator[Stage]:
        """Yield the stages of a plan."""
        chain = self.context.chain
        sends = self.sends_s()
        alive = self.alive() if self.candidate.stages > 1 else np.ones(1)
        for number, model in enumerate(self.models):
            blocks = range(0)
            ops: Sequence[int] = range(len(self.context.graph.ops))
            repeated: Sequence[int] = ()
            if chain:
                share = chain.run.count // self.candidate.stages
                blocks = range(number * share, (number + 1) * share)
                repeated = range(chain.block(blocks.start).start, chain.block(blocks.stop - 1).stop)
                head = chain.head if number == 0 else ()
                tail = chain.tail if number == self.candidate.stages - 1 else ()
                ops = (*head, *repeated, *tail)
            choices = dict.fromkeys(ops, OpChoice(0, states)) | dict.fromkeys(
                repeated, OpChoice(0, states, self.modes[column])
            )
            breakdown = CostBreakdown(*self.loads[number, row, column].tolist())
            device = model.roofline.device
            yield Stage(blocks, choices, breakdown, float(sends[number]), float(alive[number]), device)


def _stage_load(context: SearchContext, candidate: Candidate, stage: int, model: CostModel) -> Floats:
    """(state shardings, modes, fields of `CostBreakdown`) of a stage."""
    chain = context.chain
    if chain is None:
        model.price_edges(range(len(context.graph.ops)))
        return _load(model, range(len(context.graph.ops)), context.modes)
    model.price_edges(chain.representative_ops)
    plain = (Recompute.NONE,)
    share = chain.run.count // candidate.stages
    later = _load(model, chain.block(1), context.modes)
    total = share * later
    if stage == 0:
        first = _load(model, chain.head, plain) + _load(model, chain.block(0), context.modes)
        total = (share - 1) * later + first
    if stage == candidate.stages - 1:
        total = total + _load(model, chain.tail, plain)
    return total


def _load(model: CostModel, ops: Sequence[int], modes: tuple[Recompute, ...]) -> Floats:
    """(state shardings, modes, fields of `CostBreakdown`) of some ops, each with its only strategy."""
    rows = list(map(MODES.index, modes))
    total = np.zeros((len(model.settings.state_shardings), len(modes), len(fields(CostBreakdown))))
    for op in ops:
        table = model.op(op)
        states = table.states
        total[:, :, 0] += table.forward_s[0] + table.backward_s[0] + table.recompute_s[rows, 0]
        total[:, :, 1] += states.micro_s
        total[:, :, 2] += states.step_s
        total[:, :, 3] += states.update_s
        total[:, :, 4] += states.parameter_bytes
        total[:, :, 5] += states.gradient_bytes
        total[:, :, 6] += states.optimizer_bytes
        total[:, :, 7] += table.act_bytes[rows, 0]
        repeated = model.graph_analysis.repeats[op] > 1
        again = np.array([2 if repeated and mode is Recompute.FULL else 1 for mode in modes])
        for edge in model.edges_into(op):
            total[:, :, 1] += again * edge.forward_s[0, 0] + edge.backward_s[0, 0]
            total[:, :, 7] += edge.act_bytes[rows, 0, 0]
    return total
