"""Which loop of each op Megatron's tensor parallelism splits, found by following splits through the graph."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family, LoopRole, Op, Operand, OpGraph, TensorKind

Splits = Mapping[int, tuple[str | None, str | None]]  # op → loop split by data, loop split by tensor parallelism


def tensor_loops(graph: OpGraph, *, sequence_parallel: bool) -> Splits:
    """Names of the loops that the data axis and the tensor axis split, for every op."""
    split: dict[int, int | None] = {}  # tensor → dim that the tensor axis splits
    found = {}
    for op in graph.ops:
        loop = _tensor_loop(graph, op, split, sequence_parallel=sequence_parallel)
        for out in op.outputs:
            split[out.tensor] = out.loops.index(loop) if loop is not None and loop in out.loops else None
        batch = _role(op, LoopRole.BATCH)
        if batch is not None and batch == loop:
            loop = None
        found[op.id] = tuple(op.loops[i].name if i is not None else None for i in (batch, loop))
    return {op: (data, tensor) for op, (data, tensor) in found.items()}


def _tensor_loop(graph: OpGraph, op: Op, split: Mapping[int, int | None], *, sequence_parallel: bool) -> int | None:
    arriving = _arriving(op, split)
    weights = [x for x in op.inputs if _is_weight(graph, x)]
    if op.family is Family.EMBEDDING and weights:
        return _open(op, weights[0].loops[0])
    if op.family in {Family.MATMUL, Family.MOE} and weights:
        weight = max(weights, key=lambda x: len(x.loops))
        inner = summed_loops(graph, op, weight)
        features = [loop for loop in weight.loops if loop not in inner and _open(op, loop) is not None]
        return next((loop for loop in arriving if loop in inner), next(iter(features), None))
    features = [loop for loop in arriving if op.loops[loop].role is not LoopRole.SEQUENCE]
    if features and op.family is not Family.NORM:
        return features[0]
    return _role(op, LoopRole.SEQUENCE) if sequence_parallel else None


def summed_loops(graph: OpGraph, op: Op, weight: Operand) -> frozenset[int]:
    """The loops of a product's weight that the product sums over.

    They run along what comes in. A follower fused into the op may read, or leave, tensors along the other loops too.
    """
    own = {loop for loop in weight.loops if loop is not None}
    reads = own.intersection(
        loop for x in op.inputs if not _is_weight(graph, x) for loop in x.loops if loop is not None
    )
    makes = own.intersection(loop for out in op.outputs for loop in out.loops if loop is not None)
    return frozenset(reads - makes or own - (makes - reads))


def _is_weight(graph: OpGraph, operand: Operand) -> bool:
    return graph.tensors[operand.tensor].kind is TensorKind.PARAMETER


def _arriving(op: Op, split: Mapping[int, int | None]) -> list[int]:
    """Loops along which inputs come split and that the op may split."""
    dims = [(x, split.get(x.tensor)) for x in op.inputs]
    loops = [x.loops[dim] for x, dim in dims if dim is not None and dim < len(x.loops)]
    return [loop for loop in loops if loop is not None and _open(op, loop) is not None]


def _open(op: Op, loop: int | None) -> int | None:
    return loop if loop is not None and op.loops[loop].shardable else None


def _role(op: Op, role: LoopRole) -> int | None:
    return next((i for i, loop in enumerate(op.loops) if loop.role is role and loop.shardable), None)
