"""A plan's decisions put back into the cost model, so that everything about them can be asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.activations import GraphAnalysis, analyse_graph
from jupyter_autotrain.parallel.cost.layout import NONE, PARTIAL, REPLICATE, Ints
from jupyter_autotrain.parallel.cost.model import CostModel, Settings
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.graph.graph import Op, Operand
from jupyter_autotrain.parallel.plan.record import PlanRecord
from jupyter_autotrain.parallel.search import Strategy

Codes = tuple[int, ...]  # placement per mesh axis: tensor dim, REPLICATE or PARTIAL, as in `cost.layout`


@dataclass(frozen=True)
class Pricing:
    """Cost models of a plan's stages, and where in their tables the plan's decisions stand."""

    record: PlanRecord
    _rows: dict[int, int] = field(default_factory=dict, repr=False)

    @cached_property
    def models(self) -> tuple[CostModel, ...]:
        """One per stage; stages on equal devices share one."""
        record = self.record
        size = self.record.mesh.devices
        devices = [record.cluster.slowest(i * size, (i + 1) * size) for i in range(len(record.stages))]
        made: dict[Device, CostModel] = {}
        for device in devices:
            if device not in made:
                made[device] = CostModel(
                    record.graph,
                    record.cluster,
                    record.mesh,
                    record.microbatches,
                    self.settings,
                    device,
                    self.analysis,
                )
        return tuple(made[device] for device in devices)

    @cached_property
    def analysis(self) -> GraphAnalysis:
        """Facts of the graph."""
        return analyse_graph(self.record.graph)

    def strategy(self, op: Op) -> Strategy:
        """What was decided for an op."""
        return self.record.strategies[op.name]

    def needed(self, op: Op, operand: Operand) -> Codes:
        """How the plan wants an input to lie."""
        return codes(op, self.strategy(op), operand, REPLICATE)

    def produced(self, op: Op, operand: Operand) -> Codes:
        """How the plan leaves an output, or the gradient of an input."""
        return codes(op, self.strategy(op), operand, PARTIAL)

    def option_row(self, op: Op) -> int:
        """Row of the op's way to keep its parameters in its tables."""
        strategy = self.strategy(op)
        return self.settings.options.index(StateSharding(strategy.zero, strategy.offload, strategy.host_table))

    @cached_property
    def settings(self) -> Settings:
        """Constants of the search, with the ways to keep parameters that were open to it."""
        asked = self.record.request
        return replace(asked.settings, options=asked.space.options)

    def row(self, op: Op) -> int:
        """Row of the op's strategy in its tables."""
        if op.id not in self._rows:
            self._rows[op.id] = row_of(op, self.strategy(op), self.models[0].table_rows(op.id))
        return self._rows[op.id]


def loops_of(op: Op, strategy: Strategy) -> tuple[int, ...]:
    """Per mesh axis the index of the split loop, or NONE."""
    names = [loop.name for loop in op.loops]
    return tuple(NONE if name is None else names.index(name) for name in strategy.loops)


def row_of(op: Op, strategy: Strategy, table: Ints) -> int:
    """Row of a decision in the op's strategy table."""
    return int(np.flatnonzero((table == np.array(loops_of(op, strategy))).all(axis=1))[0])


def codes(op: Op, strategy: Strategy, operand: Operand, missing: int) -> Codes:
    """Placement codes of an operand; `missing` where a split loop is none of its own."""
    dims = {loop: dim for dim, loop in enumerate(operand.loops) if loop is not None}
    return tuple(REPLICATE if loop == NONE else dims.get(loop, missing) for loop in loops_of(op, strategy))
