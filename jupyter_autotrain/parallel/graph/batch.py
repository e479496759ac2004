"""The dim of the inputs that may be cut into microbatches without changing the mathematics, read off the graph.

A dim may be cut if every op on the way treats its elements independently, up to a sum or mean over them that enters the
loss linearly: then the loss is the sum, or mean, of the microbatches' losses, and so are its gradients. From a dim of
an input all dims that run along the same loops are followed, forwards and backwards. What stops it:

* an op that works across the dim: softmax, sorting, indexing, joining, statistics, any op without a rule;
* a loop whose iterations read each other although it may be split (`Loop.couples_iterations`: batch statistics,
  classes of a loss);
* samples that meet: two dims of one tensor, or two loops of one op (in-batch losses);
* a parameter with an element per sample; a sum over samples that is not used linearly.

Inputs are tried in order, their first dim first; time linear in the graph for each dim tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from operator import itemgetter

from jupyter_autotrain.parallel.graph.batch_dims import CONSTANT, BatchDims, track_batch_dim
from jupyter_autotrain.parallel.graph.graph import JOINS, LINEAR, SUMS, Family, Loop, Op, OpGraph, TensorKind

NO_INPUT = "no input has a dim to cut"
ENOUGH = 0.5  # share of the work that a dim must reach
SCALING = LINEAR | {"mul", "sum", "mean", "nansum"}


class BatchReduction(StrEnum):
    """The way in which samples were joined."""

    SUM = "sum"
    MEAN = "mean"


class NotSplittable(Exception):  # noqa: N818 - not an error: the answer "this dim may not be cut", with the reason
    """The reason why a dim may not be cut."""


def batch_in(graph: OpGraph) -> tuple[BatchDims | None, str]:
    """Return the dim to cut, or why there is none: what stops the dim that reaches most of the work."""
    enough = ENOUGH * sum(op.flops_forward for op in graph.ops)
    found: list[tuple[float, BatchDims]] = []
    refused: list[tuple[float, str]] = []
    for batch in _tracked_seeds(graph):
        work = sum(graph.ops[op].flops_forward for op in {*batch.loops, *batch.inner})
        try:
            check_independent(graph, batch)
        except NotSplittable as stop:
            refused.append((work, str(stop)))
            continue
        found.append((work, batch))
        if work >= enough:
            break
    if found:
        return max(found, key=itemgetter(0))[1], ""
    return None, max(refused, key=itemgetter(0), default=(0.0, NO_INPUT))[1]


def _tracked_seeds(graph: OpGraph) -> Iterator[BatchDims]:
    """Yield the dims of the inputs, each followed through the graph; none that another one leads to."""
    tried: set[tuple[int, int]] = set()
    for seed in _seeds(graph):
        if seed not in tried:
            batch = track_batch_dim(graph, *seed)
            for tensor in batch.by_tensor:
                tried.update((tensor, dim) for dim in batch.dims(tensor))
            yield batch


def check_independent(graph: OpGraph, batch: BatchDims) -> None:
    """Refuse a dim that something stops.

    Raises:
        NotSplittable: With the first op that stops it.
    """
    _check_inputs(graph, batch)
    joined: dict[int, BatchReduction] = {}
    for op in graph.ops:
        if any(x.tensor in batch.by_tensor for x in (*op.inputs, *op.outputs)):
            _check_op(graph, batch, op, joined)
        elif _reads_any(op, joined):
            how = _linear(graph, op, joined)
            joined.update((x.tensor, how) for x in op.outputs)


def _seeds(graph: OpGraph) -> Iterator[tuple[int, int]]:
    """Dims of the inputs that ops read: all first ones, then all second ones, and so on."""
    inputs = [t for t in graph.tensors if t.kind is TensorKind.INPUT and t.id in graph.consumers]
    for dim in range(max((len(t.shape) for t in inputs), default=0)):
        yield from ((t.id, dim) for t in inputs if dim < len(t.shape) and t.shape[dim] > 1)


def _check_inputs(graph: OpGraph, batch: BatchDims) -> None:
    """Refuse to cut an input and leave another whole that looks as if it had the same samples."""
    inputs = [t for t in graph.tensors if t.kind is TensorKind.INPUT and t.id in graph.consumers]
    cut = {t.name: dim for t in inputs for dim in batch.dims(t.id)}
    for t in inputs:
        for name, dim in cut.items():
            if t.id not in batch.by_tensor and t.shape[dim : dim + 1] == (batch.samples,):
                raise NotSplittable(f"samples of {name} meet all of {t.name}")


def _check_op(graph: OpGraph, batch: BatchDims, op: Op, joined: dict[int, BatchReduction]) -> None:
    """Refuse an op that does not treat samples independently; note what it joins."""
    if op.id in batch.untracked:
        raise NotSplittable(f"{op.name} ({op.kind}) does not keep the samples apart")
    along = _along(graph, batch, op)
    if len(along - {None}) > 1:
        raise NotSplittable(f"{op.name} compares samples with each other")
    if None in along:
        raise NotSplittable(f"{op.name} ({op.kind}) works across the samples")
    if not all(_is_independent(op.loops[loop_index]) for loop_index in along if loop_index is not None):
        raise NotSplittable(f"{op.name} ({op.kind}) compares samples, or takes statistics over them")
    if _reads_any(op, joined):
        raise NotSplittable(f"{op.name} uses what was summed over the samples for each of them")
    results = [x.tensor for x in op.outputs if x.tensor not in batch.by_tensor]
    if results:
        joined |= dict.fromkeys(results, _join(op))


def _reads_any(op: Op, joined: Mapping[int, BatchReduction]) -> bool:
    return any(x.tensor in joined for x in op.inputs)


def _is_independent(loop: Loop) -> bool:
    return not loop.couples_iterations and (loop.shardable or loop.size == 1)


def _along(graph: OpGraph, batch: BatchDims, op: Op) -> set[int | None]:
    """Loops of an op along which samples lie, None for no loop."""
    along: set[int | None] = set(batch.loops.get(op.id, ()))
    for x in (*op.inputs, *op.outputs):
        dims = batch.dims(x.tensor)
        tensor = graph.tensors[x.tensor]
        if len(dims) > 1:
            raise NotSplittable(f"{op.name} compares samples with each other")
        if dims and _is_fixed(tensor.kind, tensor.name):
            raise NotSplittable(f"{op.name} reads an element of {tensor.name} for each sample")
        if op.id not in batch.tracked_by_elements:
            along.update(x.loops[dim] for dim in dims)
    return along


def _is_fixed(kind: TensorKind, name: str) -> bool:
    return kind is TensorKind.PARAMETER or (kind is TensorKind.BUFFER and not name.startswith(CONSTANT))


def _join(op: Op) -> BatchReduction:
    """Return how an op joins samples into one value."""
    if op.kind == "mean" or op.family is Family.LOSS:
        return BatchReduction.MEAN
    if op.kind in ("sum", "nansum") or op.family is Family.MATMUL:
        return BatchReduction.SUM
    raise NotSplittable(f"{op.name} ({op.kind}) is not a sum or mean over the samples")


def _linear(graph: OpGraph, op: Op, joined: Mapping[int, BatchReduction]) -> BatchReduction:
    """Return how samples are joined in the result of an op that must be linear in what was joined before."""
    read = [x.tensor for x in op.inputs]
    ours = list(filter(joined.__contains__, read))
    ways = {joined[tensor] for tensor in ours}
    if op.kind in SUMS | JOINS:
        others = {graph.tensors[tensor].kind for tensor in set(read) - joined.keys()}
        linear = ways == {BatchReduction.MEAN} or (len(ways) == 1 and others <= {TensorKind.BUFFER})
    elif op.kind == "div":
        linear = ours == read[:1]
    else:
        linear = len(ours) == 1 and (op.family is Family.RESHAPE or op.kind in SCALING)
    if linear:
        return min(ways)
    raise NotSplittable(f"{op.name} ({op.kind}) is not linear in what was summed over the samples")
