"""The reason for an op's split: the cost of every other split, with the rest of the plan as it stands.

With strategy r for the op, parameters kept by state sharding o, and all neighbours as planned, a step takes

    m (forward(r) + backward(r) + again(r)) + m sum_edges move(r) + m micro(o, r) + sync(o, r) + update(o, r)

seconds of the op's own, and its rank holds state(o, r) + in_flight * activations(r) bytes for it. Each split is shown
with the state sharding that is fastest within the memory limit. Time: one row of tables,
whatever the depth of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np

from jupyter_autotrain.core.cluster import MeshSpec
from jupyter_autotrain.parallel.arrays import Floats, Ints
from jupyter_autotrain.parallel.cost.activations import MODES
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.ops import OpTable
from jupyter_autotrain.parallel.cost.redistribution import EdgeTable
from jupyter_autotrain.parallel.graph.graph import Op
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.explanation import Explanation, OpAlternative, reason
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.traffic import forward_passes

ROUNDING = 1 + 1e-12


def explain(plan: PlanData, name: str) -> Explanation:
    """See `Plan.explain`."""
    op = plan.op(name)
    costs = plan.decision_costs()
    folded = costs.folded
    count = len(folded.nodes[folded.node_of[op.id]].ops)
    row = costs.row(op)
    op_costs = _op_costs(plan, costs, op, count)
    chosen = op_costs.alternative(costs.state_sharding_row(op), row)
    others = [op_costs.best(other) for other in range(len(op_costs.table.table)) if other != row]
    ways = sorted(_distinct(others), key=attrgetter("seconds"))
    runner_up = ways[0] if ways else None
    why = "No other split is possible."
    if runner_up:
        why = reason(chosen, runner_up, plan.solution.limit_bytes, plan.gap)
    every = sorted((chosen, *ways), key=attrgetter("seconds"))
    return Explanation(op.name, count, chosen, runner_up, tuple(every), why)


@dataclass(frozen=True)
class _OpCosts:
    """(state sharding, strategy) costs of an op among its neighbours.

    Attributes:
        op: The op.
        mesh: The mesh.
        table: Its own table.
        compute_s: Per strategy, of a whole step; the other seconds alike.
        weight_s: Per state sharding and strategy.
        held: Bytes per state sharding and strategy.
        room: Bytes that a rank may still take for one such op, absolute, not relative to the present choice.
    """

    op: Op
    mesh: MeshSpec
    table: OpTable
    compute_s: Floats
    input_s: Floats
    output_s: Floats
    weight_s: Floats
    held: Floats
    room: float

    def best(self, row: int) -> OpAlternative:
        """Return a split with its fastest state sharding within the limit, or its lightest one."""
        sharding_rows = range(len(self.table.states.state_shardings))
        fitting = [sharding_row for sharding_row in sharding_rows if self.held[sharding_row, row] <= self.room]
        if fitting:
            return self.alternative(min(fitting, key=lambda sharding_row: float(self.weight_s[sharding_row, row])), row)
        return self.alternative(min(sharding_rows, key=lambda sharding_row: float(self.held[sharding_row, row])), row)

    def alternative(self, sharding_row: int, row: int) -> OpAlternative:
        """Return a split with one state sharding."""
        split = self.table.table[row]
        kept = self.table.states.state_shardings[sharding_row]
        has_weights = bool(self.table.states.state_bytes.any())
        return OpAlternative(
            _split(self.op, split, self.mesh),
            tuple(self.op.loops[i].name if i >= 0 else None for i in split),
            int(kept.zero) if has_weights else 0,
            str(kept) if has_weights else "",
            float(self.compute_s[row]),
            float(self.input_s[row]),
            float(self.output_s[row]),
            float(self.weight_s[sharding_row, row]),
            float(self.held[sharding_row, row]),
            bool(self.held[sharding_row, row] <= self.room * ROUNDING),
        )


def _op_costs(plan: PlanData, costs: DecisionCosts, op: Op, count: int) -> _OpCosts:
    """Costs of an op that `count` ops are alike to."""
    decided = costs.op_decision(op)
    model = costs.models[decided.stage]
    rank = plan.cost.ranks[decided.stage]
    table = model.op(op.id)
    states = table.states
    mode = MODES.index(decided.recompute)
    m = plan.microbatches
    input_s, input_bytes = _edges(costs, model, model.edges_into(op.id), op)
    output_s, output_bytes = _edges(costs, model, _edges_from(costs, model, op), op)
    held = states.state_bytes + rank.in_flight * (table.act_bytes[mode] + (input_bytes + output_bytes))
    spare = plan.solution.limit_bytes - rank.peak_bytes
    return _OpCosts(
        op=op,
        mesh=model.mesh,
        table=table,
        compute_s=m * (table.forward_s + table.backward_s + table.recompute_s[mode]),
        input_s=m * input_s,
        output_s=m * output_s,
        weight_s=m * states.micro_s + states.step_s + states.update_s,
        held=held,
        room=float(held[costs.state_sharding_row(op), costs.row(op)]) + max(0.0, spare) / count,
    )


def _edges_from(costs: DecisionCosts, model: CostModel, op: Op) -> Iterator[EdgeTable]:
    for reader in set(costs.graph.readers(op)):
        for edge in model.edges_into(reader):
            if edge.source == op.id:
                yield edge


def _edges(costs: DecisionCosts, model: CostModel, edges: Iterable[EdgeTable], op: Op) -> tuple[Floats, Floats]:
    """Seconds of a microbatch, and kept bytes, of some edges together."""
    seconds, kept = np.zeros((2, len(model.op(op.id).table)))
    for edge in edges:
        more_s, more_bytes = _edge(costs, edge, op)
        seconds += more_s
        kept += more_bytes
    return seconds, kept


def _edge(costs: DecisionCosts, edge: EdgeTable, op: Op) -> tuple[Floats, Floats]:
    """Seconds and kept bytes of an edge for each strategy of `op`, its other end as planned."""
    ops = costs.graph.ops
    reader = ops[edge.target]
    row = costs.row(ops[edge.source] if reader is op else reader)
    at = (row, slice(None)) if reader is op else (slice(None), row)
    kept = edge.act_bytes[MODES.index(costs.op_decision(reader).recompute)]
    return np.asarray(forward_passes(costs, reader) * edge.forward_s[at] + edge.backward_s[at]), np.asarray(kept[at])


def _split(op: Op, loops: Ints, mesh: MeshSpec) -> str:
    """Return what each axis splits; tiers of one axis together where they split alike, else each with its size."""
    words: dict[str, dict[str, int]] = {}
    for axis, size, index in zip(mesh.axes, mesh.shape, loops, strict=True):
        loop = op.loops[index] if index >= 0 else None
        sizes = words.setdefault(axis, {})
        what = f"{loop.role} ({loop.name})" if loop else "whole"
        sizes[what] = sizes.get(what, 1) * size
    parts = []
    for axis, sizes in words.items():
        parts += [f"{axis} {size if len(sizes) > 1 else ''}".rstrip() + f": {what}" for what, size in sizes.items()]
    return ", ".join(parts) or "one device"


def _distinct(ways: list[OpAlternative]) -> list[OpAlternative]:
    """Return the fastest way of each split in words."""
    ordered = sorted(ways, key=attrgetter("split", "seconds"))
    return [next(same) for _, same in groupby(ordered, key=attrgetter("split"))]
