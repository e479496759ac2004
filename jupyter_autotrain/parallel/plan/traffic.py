"""Which collectives a plan runs, on which axis, and how many bytes each rank sends for them.

Bytes on the wire per device for a tensor of n bytes over p devices (ring forms): all-gather and reduce-scatter
(p-1)/p n, all-reduce twice that, all-to-all (p-1)/p of what the device holds (Thakur et al. 2005). Moves are made in
the cost model's order: what shrinks the tensor first, gathers last. Weights that have replicas on several axes are
synchronised level by level: inner axes carry all bytes, outer ones what an inner group leaves to a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from jupyter_autotrain.parallel.cost.layout import PARTIAL, REPLICATE
from jupyter_autotrain.parallel.cost.memory import Recompute, Zero
from jupyter_autotrain.parallel.graph.graph import DTYPE_BYTES, Op, Operand
from jupyter_autotrain.parallel.plan.folded import Edge, Folded, op_of
from jupyter_autotrain.parallel.plan.pricing import Codes, Pricing
from jupyter_autotrain.parallel.plan.record import PlanRecord


@dataclass(frozen=True, slots=True)
class Move:
    """One collective on one axis; `sent_bytes` is what one rank sends for it, `times` how often a step runs it."""

    axis: int
    what: str
    sent_bytes: float
    times: int = 1


_KINDS: Sequence[tuple[str, Callable[[int, int], bool], Callable[[float, int], float]]] = (
    ("slice", lambda now, goal: now == REPLICATE and goal >= 0, lambda n, p: 0.0),  # noqa: ARG005 - free
    ("reduce-scatter", lambda now, goal: now == PARTIAL and goal >= 0, lambda n, p: n * (p - 1) / p),
    ("all-to-all", lambda now, goal: 0 <= now != goal >= 0, lambda n, p: n / p * (p - 1) / p),
    ("all-reduce", lambda now, goal: now == PARTIAL and goal == REPLICATE, lambda n, p: 2 * n * (p - 1) / p),
    ("all-gather", lambda now, goal: now >= 0 and goal == REPLICATE, lambda n, p: n * (p - 1) / p),
)


def moves(source: Codes, target: Codes, size_bytes: float, shape: Sequence[int]) -> tuple[Move, ...]:
    """The collectives that bring a tensor of `size_bytes` from one layout to another; free slices are left out."""
    now = list(source)
    found = []
    for what, applies, sent in _KINDS:
        for axis, size in enumerate(shape):
            if not applies(now[axis], target[axis]):
                continue
            others = prod(s for i, s in enumerate(shape) if i != axis and now[i] >= 0)
            now[axis] = target[axis]
            if sent(1.0, size):
                found.append(Move(axis, what, sent(size_bytes / others, size)))
    return tuple(found)


def edge_moves(pricing: Pricing, edge: Edge) -> tuple[tuple[Move, ...], tuple[Move, ...]]:
    """Moves of an edge's tensor and of its gradient, in one microbatch, once per reader.

    A gathered input is kept as a slice and gathered again in the backward pass, as the cost model has it.
    """
    record = pricing.record
    model = pricing.models[0]
    reader = record.graph.ops[edge.readers[0]]
    maker = record.graph.ops[record.graph.producers[edge.operand.tensor]]
    out = next(x for x in maker.outputs if x.tensor == edge.operand.tensor)
    size = model.tensor_bytes(edge.operand.tensor)
    shape = record.mesh.shape
    lies = pricing.produced(maker, out)
    forward = moves(lies, pricing.needed(reader, edge.operand), size, shape)
    if edge.operand.tensor not in pricing.analysis.differentiable:
        return forward, ()
    goal = tuple(REPLICATE if code == PARTIAL else code for code in lies)
    again = moves(goal, pricing.needed(reader, edge.operand), size, shape)
    return forward, (*again, *moves(pricing.produced(reader, edge.operand), goal, size, shape))


def state_moves(pricing: Pricing, op: Op) -> Iterator[Move]:
    """Gradient and parameter collectives of an op's weights, for a whole step."""
    record = pricing.record
    for operand in op.inputs:
        weight = record.graph.tensors[operand.tensor]
        if operand.tensor not in pricing.analysis.charged_parameters[op.id] or not weight.trainable:
            continue
        gradient = pricing.produced(op, operand)
        if pricing.strategy(op).host_table and operand.tensor in pricing.analysis.looked_up:
            yield from _row_moves(pricing, op, gradient)
            continue
        held = weight.numel * DTYPE_BYTES[weight.dtype] / _parts(gradient, record.mesh.shape)
        for axis, size in reversed(list(enumerate(record.mesh.shape))):
            if gradient[axis] == PARTIAL:
                for what, passes, times in _syncs(pricing.strategy(op).zero, record.microbatches):
                    yield Move(axis, what, passes * held * (size - 1) / size, times)
                held /= size


def _row_moves(pricing: Pricing, op: Op, gradient: Codes) -> Iterator[Move]:
    """Gradients of looked-up rows to the ranks that hold the same slice of a table on their hosts."""
    record = pricing.record
    out = op.outputs[0]
    rows = pricing.models[0].tensor_bytes(out.tensor) / _parts(pricing.needed(op, out), record.mesh.shape)
    for axis, size in reversed(list(enumerate(record.mesh.shape))):
        if gradient[axis] == PARTIAL:
            yield Move(axis, "all-gather", rows * (size - 1), record.microbatches)
            rows *= size


def most_sent_bytes(record: PlanRecord) -> float:
    """Bytes that a rank sends in a step on all axes, of the stage that sends most."""
    pricing = Pricing(record)
    folded = Folded(record)
    return max(sum(sent_bytes(pricing, folded, stage.index).values()) for stage in record.stages)


def sent_bytes(pricing: Pricing, folded: Folded, stage: int) -> Mapping[str, float]:
    """Bytes that a rank of `stage` sends in a step, by axis name; `stages` for messages to its neighbours."""
    record = pricing.record
    axes = record.mesh.axes
    total = dict.fromkeys(axes, 0.0)
    here = {op.id for op in record.graph.ops if pricing.strategy(op).stage == stage}
    for edge in folded.edges:
        count = sum(reader in here for reader in edge.readers)
        if count:
            forward, backward = edge_moves(pricing, edge)
            again = _again(pricing, op_of(record, folded.nodes[edge.target]))
            for move in (*forward * again, *backward):
                total[axes[move.axis]] += count * record.microbatches * move.sent_bytes
    for node in folded.nodes:
        count = sum(op in here for op in node.ops)
        for move in state_moves(pricing, op_of(record, node)) if count else ():
            total[axes[move.axis]] += count * move.times * move.sent_bytes
    if len(record.stages) > 1:
        total["stages"] = _between_stages(pricing, here)
    return total


def _again(pricing: Pricing, op: Op) -> int:
    """Forward passes in a step: full recompute runs one more inside repeated blocks."""
    full = pricing.strategy(op).recompute is Recompute.FULL and pricing.analysis.repeats[op.id] > 1
    return 2 if full else 1


def _syncs(zero: Zero, microbatches: int) -> tuple[tuple[str, int, int], ...]:
    """(collective, passes over the bytes, times per step) of a weight's replicas."""
    if zero is Zero.NOTHING:
        return (("all-reduce", 2, 1),)
    if zero is Zero.OPTIMIZER:
        return ("reduce-scatter", 1, 1), ("all-gather", 1, 1)
    if zero is Zero.GRADIENTS:
        return ("reduce-scatter", 1, microbatches), ("all-gather", 1, 1)
    return ("all-gather", 2, microbatches), ("reduce-scatter", 1, microbatches)


def _parts(placed: Codes, shape: Sequence[int]) -> int:
    return prod(size for size, code in zip(shape, placed, strict=True) if code >= 0)


def _between_stages(pricing: Pricing, here: set[int]) -> float:
    """Activations to the next stage and gradients to the one before, each tensor once per microbatch."""
    record = pricing.record
    graph = pricing.record.graph
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
        split = _parts(pricing.produced(op, out), record.mesh.shape)
        total += pricing.models[0].tensor_bytes(tensor) * record.microbatches / split
    return total * record.solution.chunks
