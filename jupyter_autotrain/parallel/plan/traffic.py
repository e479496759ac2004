"""Collectives that a plan runs, by axis, and the bytes that each rank sends for them.

Bytes on the wire per device for a tensor of n bytes over p devices (ring forms): all-gather and reduce-scatter (p-1)/p
n, all-reduce twice that, all-to-all (p-1)/p of what the device holds (Thakur et al. 2005). Tokens of a mixture go to
their experts and back as one row for each, here evenly routed. Layouts change in the cost model's order: what shrinks
the tensor first, gathers last. Weights that have replicas on several axes are synchronised level by level: inner axes
carry all bytes, outer ones what an inner group leaves to a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from jupyter_autotrain.parallel.cost.exchange import DIRECTIONS, Exchange
from jupyter_autotrain.parallel.cost.layout import Partial, Placement, Placements, Replicate, Shard
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.graph.graph import DTYPE_BYTES, Op, Operand, OpGraph
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts, FoldedEdge
from jupyter_autotrain.parallel.search import Alternative, SearchRequest, Solution
from jupyter_autotrain.parallel.search.solution import decision_of


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective on one axis; `sent_bytes` is what one rank sends for it, `times` how often a step runs it."""

    axis: int
    what: str
    sent_bytes: float
    times: int = 1


_CHANGES: Sequence[tuple[str, type[Placement], type[Placement], Callable[[float, int], float]]] = (
    ("slice", Replicate, Shard, lambda n, p: 0.0),  # noqa: ARG005 - free
    ("reduce-scatter", Partial, Shard, lambda n, p: n * (p - 1) / p),
    ("all-to-all", Shard, Shard, lambda n, p: n / p * (p - 1) / p),
    ("all-reduce", Partial, Replicate, lambda n, p: 2 * n * (p - 1) / p),
    ("all-gather", Shard, Replicate, lambda n, p: n * (p - 1) / p),
)


def collectives(source: Placements, target: Placements, size_bytes: float, shape: Sequence[int]) -> list[Collective]:
    """Return what brings a tensor of `size_bytes` from one layout to another; free slices are left out."""
    now = list(source)
    found = []
    for what, before, after, sent in _CHANGES:
        for axis, size in enumerate(shape):
            goal = target[axis]
            if now[axis] == goal or not (isinstance(now[axis], before) and isinstance(goal, after)):
                continue
            others = prod(s for i, s in enumerate(shape) if i != axis and isinstance(now[i], Shard))
            now[axis] = goal
            if sent(1.0, size):
                found.append(Collective(axis, what, sent(size_bytes / others, size)))
    return found


def edge_collectives(costs: DecisionCosts, edge: FoldedEdge) -> tuple[list[Collective], list[Collective]]:
    """Return collectives for an edge's tensor and for its gradient, in one microbatch, once per reader.

    A gathered input is kept as a slice and gathered again in the backward pass, as the cost model has it.
    """
    graph = costs.graph
    reader = graph.ops[edge.readers[0]]
    maker = graph.ops[graph.producers[edge.operand.tensor]]
    out = next(x for x in maker.outputs if x.tensor == edge.operand.tensor)
    size = costs.models[0].tensor_bytes(edge.operand.tensor)
    shape = costs.decision.mesh.shape
    made = costs.output_placements(maker, out)
    wanted = costs.input_placements(reader, edge.operand)
    forward = collectives(made, wanted, size, shape)
    tokens = _exchanges(costs, reader, edge.operand)
    forward += tokens
    if edge.operand.tensor not in costs.analysis.differentiable:
        return forward, []
    reduced = tuple(Replicate() if isinstance(one, Partial) else one for one in made)
    again = collectives(reduced, wanted, size, shape)
    gradient = collectives(costs.input_gradient_placements(reader, edge.operand), reduced, size, shape)
    return forward, [*again, *gradient, *tokens]


def _exchanges(costs: DecisionCosts, reader: Op, operand: Operand) -> list[Collective]:
    """Return what one pass of a mixture's tokens sends: rows to experts on other ranks, and what these make."""
    exchange = Exchange.of(costs.graph, reader)
    if exchange is None or exchange.tensor != operand.tensor:
        return []
    shape = costs.decision.mesh.shape
    held = costs.models[0].tensor_bytes(operand.tensor) / _parts(costs.input_placements(reader, operand), shape)
    loops = costs.op_decision(reader).loops
    found = []
    for axis, (loop, size) in enumerate(zip(loops, shape, strict=True)):
        if loop == exchange.experts:
            found.append(Collective(axis, "all-to-all", DIRECTIONS * exchange.rows * held * (size - 1) / size))
    return found


def state_collectives(costs: DecisionCosts, op: Op) -> Iterator[Collective]:
    """Gradient and parameter collectives of an op's weights, for a whole step."""
    shape = costs.decision.mesh.shape
    states = costs.op_decision(op).states
    for operand in op.inputs:
        weight = costs.graph.tensors[operand.tensor]
        if operand.tensor not in costs.analysis.charged_parameters[op.id] or not weight.trainable:
            continue
        gradient = costs.input_gradient_placements(op, operand)
        if states.host_table and operand.tensor in costs.analysis.looked_up:
            yield from _row_collectives(costs, op, gradient)
            continue
        held = weight.numel * DTYPE_BYTES[weight.dtype] / _parts(gradient, shape)
        level = states.zero
        for axis, size in reversed(list(enumerate(shape))):
            if isinstance(gradient[axis], Partial):
                for what, passes, times in _syncs(level, costs.decision.microbatches):
                    yield Collective(axis, what, passes * held * (size - 1) / size, times)
                held /= size
                level = ZeroLevel.NONE if states.inner else level


def _row_collectives(costs: DecisionCosts, op: Op, gradient: Placements) -> Iterator[Collective]:
    """Gradients of looked-up rows to the ranks that hold the same slice of a table on their hosts."""
    shape = costs.decision.mesh.shape
    out = op.outputs[0]
    rows = costs.models[0].tensor_bytes(out.tensor) / _parts(costs.output_placements(op, out), shape)
    for axis, size in reversed(list(enumerate(shape))):
        if isinstance(gradient[axis], Partial):
            yield Collective(axis, "all-gather", rows * (size - 1), costs.decision.microbatches)
            rows *= size


def most_sent_bytes(costs: DecisionCosts) -> float:
    """Bytes that a rank sends in a step on all axes, of the stage that sends most."""
    stages = range(len(costs.decision.stages))
    return max(sum(sent_bytes(costs, stage).values()) for stage in stages)


def sent_bytes(costs: DecisionCosts, stage: int) -> Mapping[str, float]:
    """Bytes that a rank of `stage` sends in a step, by axis name; `pipeline` for messages between stages."""
    axes = costs.decision.mesh.axes
    folded = costs.folded
    total = dict.fromkeys(axes, 0.0)
    here = stage_ops(costs, stage)
    for edge in folded.edges:
        together = costs.analysis.moved_together
        count = sum(1 / together.get((edge.operand.tensor, reader), 1) for reader in edge.readers if reader in here)
        if count:
            forward, backward = edge_collectives(costs, edge)
            passes = forward_passes(costs, folded.first_op(folded.nodes[edge.target]))
            for one in forward * passes + backward:
                total[axes[one.axis]] += count * costs.decision.microbatches * one.sent_bytes
    for node in folded.nodes:
        count = sum(op in here for op in node.ops)
        for one in state_collectives(costs, folded.first_op(node)) if count else ():
            total[axes[one.axis]] += count * one.times * one.sent_bytes
    if len(costs.decision.stages) > 1:
        total["pipeline"] = _between_stages(costs, here)
    return total


def stage_ops(costs: DecisionCosts, stage: int) -> frozenset[int]:
    """Ids of a stage's ops."""
    return frozenset(op.id for op in costs.graph.ops if costs.op_decision(op).stage == stage)


def forward_passes(costs: DecisionCosts, op: Op) -> int:
    """Forward passes in a step: full recompute runs one more inside repeated blocks."""
    full = costs.op_decision(op).recompute is Recompute.FULL and costs.analysis.repeats[op.id] > 1
    return 2 if full else 1


def _syncs(zero: ZeroLevel, microbatches: int) -> tuple[tuple[str, int, int], ...]:
    """Return (collective, passes over the bytes, times per step) of a weight's replicas."""
    if zero is ZeroLevel.NONE:
        return (("all-reduce", 2, 1),)
    if zero is ZeroLevel.OPTIMIZER:
        return ("reduce-scatter", 1, 1), ("all-gather", 1, 1)
    if zero is ZeroLevel.GRADIENTS:
        return ("reduce-scatter", 1, microbatches), ("all-gather", 1, 1)
    return ("all-gather", 2, microbatches), ("reduce-scatter", 1, microbatches)


def _parts(placed: Placements, shape: Sequence[int]) -> int:
    return prod(size for size, one in zip(shape, placed, strict=True) if isinstance(one, Shard))


def _between_stages(costs: DecisionCosts, here: frozenset[int]) -> float:
    """Activations to the next stage and gradients to the one before, each tensor once per microbatch."""
    graph = costs.graph
    decision = costs.decision
    crossing: dict[int, Operand] = {}
    for op in graph.ops:
        for operand in op.inputs:
            maker = graph.producers.get(operand.tensor)
            if maker is not None and (maker in here) != (op.id in here):
                crossing[operand.tensor] = operand
    total = 0.0
    for tensor in crossing:
        op = graph.ops[graph.producers[tensor]]
        out = next(x for x in op.outputs if x.tensor == tensor)
        split = _parts(costs.output_placements(op, out), decision.mesh.shape)
        total += costs.models[0].tensor_bytes(tensor) * decision.microbatches / split
    return total * decision.chunks


MOST_OPS = 10_000  # a few seconds for all alternatives
MOST_DIFFERENT = 2_000


def with_traffic(request: SearchRequest, solution: Solution) -> Solution:
    """Return the solution with `sent_bytes` in all its costs; its alternatives no longer hold their outcomes.

    Time: that of pricing each plan's folded graph once; only the found plan's of huge graphs, and where the request
    has no baselines, as while a slider moves.
    """
    every = request.baselines and _is_small(solution.graph)
    found = DecisionCosts.of(solution.graph, solution.cluster, solution.decision, request)
    return replace(
        solution,
        cost=replace(solution.cost, sent_bytes=most_sent_bytes(found)),
        best=solution.best and _counted(solution.best, request, every=every),
        candidates=tuple(_counted(other, request, every=every) for other in solution.candidates),
        baselines={name: _counted(other, request, every=every) for name, other in solution.baselines.items()},
    )


def _is_small(graph: OpGraph) -> bool:
    different = len(graph.ops) - sum(run.length * (run.count - 1) for run in graph.repeated_blocks)
    return different <= MOST_DIFFERENT and len(graph.ops) <= MOST_OPS


def _counted(other: Alternative, request: SearchRequest, *, every: bool) -> Alternative:
    outcome = other.outcome
    if outcome is None or other.cost is None or not every:
        return replace(other, outcome=None)
    model = outcome.models[0]
    costs = DecisionCosts.of(model.graph, model.cluster, decision_of(outcome), request)
    return replace(other, cost=replace(other.cost, sent_bytes=most_sent_bytes(costs)), outcome=None)
