"""Tensor parallelism as Megatron-LM splits a model (Shoeybi et al. 2019; Korthikanti et al. 2022), read off the graph.

A product with weights splits its output features where its input comes whole, and its input features where that comes
split; what lies between follows; with sequence parallelism norms and residuals split the sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from jupyter_autotrain.parallel.graph.graph import Family, LoopRole, Op, Operand, OpGraph, TensorKind

Splits = dict[int, tuple[str | None, str | None]]  # op → loop split by data, loop split by tensor parallelism


def tensor_loops(graph: OpGraph, *, sequence_parallel: bool) -> Splits:
    """Names of the loops that the data axis and the tensor axis split, for every op."""
    split: dict[int, int | None] = {}  # tensor → dim that the tensor axis splits
    found: Splits = {}
    for op in graph.ops:
        loop = _tensor_loop(graph, op, split, sequence_parallel=sequence_parallel)
        for out in op.outputs:
            split[out.tensor] = out.loops.index(loop) if loop is not None and loop in out.loops else None
        batch = _role(op, LoopRole.BATCH)
        found[op.id] = (_name(op, batch), None if batch == loop else _name(op, loop))
    return found


def _name(op: Op, loop: int | None) -> str | None:
    return None if loop is None else op.loops[loop].name


def _tensor_loop(graph: OpGraph, op: Op, split: Mapping[int, int | None], *, sequence_parallel: bool) -> int | None:
    arriving = _arriving(op, split)
    weights = [x for x in op.inputs if _is_weight(graph, x)]
    if weights and op.family is Family.EMBEDDING:
        return next(_open(op, weights[0].loops[:1]), None)
    if weights and op.family in {Family.MATMUL, Family.MOE}:
        return _loop_of_product(graph, op, weights, arriving)
    features = [loop for loop in arriving if op.loops[loop].role is not LoopRole.SEQUENCE]
    if features and op.family is not Family.NORM:
        return features[0]
    return _role(op, LoopRole.SEQUENCE) if sequence_parallel else None


def _loop_of_product(graph: OpGraph, op: Op, weights: Sequence[Operand], arriving: Sequence[int]) -> int | None:
    """Return the summed loop along which an input comes split, else the first of the weight's other loops."""
    weight = max(weights, key=lambda x: len(x.loops))
    inner = summed_loops(graph, op, weight)
    features = (loop for loop in _open(op, weight.loops) if loop not in inner)
    return next(filter(inner.__contains__, arriving), next(features, None))


def summed_loops(graph: OpGraph, op: Op, weight: Operand) -> frozenset[int]:
    """Return the loops of a product's weight that the product sums over.

    They run along what comes in. A follower fused into the op may read, or leave, tensors along the other loops too.
    """
    own = {loop for loop in weight.loops if loop is not None}
    inputs = [x.loops for x in op.inputs if not _is_weight(graph, x)]
    reads = own.intersection(chain.from_iterable(inputs))
    makes = own.intersection(chain.from_iterable(out.loops for out in op.outputs))
    return frozenset(reads - makes or own - (makes - reads))


def _is_weight(graph: OpGraph, operand: Operand) -> bool:
    return graph.tensors[operand.tensor].kind is TensorKind.PARAMETER


def _arriving(op: Op, split: Mapping[int, int | None]) -> list[int]:
    """Loops along which inputs come split and that the op may split."""
    loops: list[int | None] = []
    for x in op.inputs:
        dim = split.get(x.tensor)
        if dim is not None:
            loops += x.loops[dim : dim + 1]
    return list(_open(op, loops))


def _open(op: Op, loops: Iterable[int | None]) -> Iterator[int]:
    """Yield those that may be split."""
    for loop in loops:
        if loop is not None and op.loops[loop].shardable:
            yield loop


def _role(op: Op, role: LoopRole) -> int | None:
    return next((i for i, loop in enumerate(op.loops) if loop.role is role and loop.shardable), None)
