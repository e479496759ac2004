"""Follows a dim of a tensor through a graph: where the same samples lie in every other tensor.

From an op's operand to the others that run along the same loop, forwards and backwards; through a view by the elements,
so that samples are found again behind a dim that they shared with others. Time linear in the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from jupyter_autotrain.parallel.graph.graph import Op, Operand, OpGraph, TensorKind
from jupyter_autotrain.parallel.graph.rules.nest import Shape
from jupyter_autotrain.parallel.graph.rules.views import VIEWS as VIEW_WORDS

CONSTANT = "constant"  # name of what the model makes of nothing; a part of it is as good as a part of an input
COUNTING = "constant.arange"  # the same where it counts from 0 up: it indexes each sample for itself
VIEWS = frozenset(VIEW_WORDS.split())

BatchDim: TypeAlias = tuple[int, int]
"""Where the samples lie in a tensor: a dim, and how many elements of it lie outside of them (1: they lead the dim)."""


@dataclass(frozen=True)
class BatchDims:
    """A dim of the inputs, followed through the graph.

    Attributes:
        samples: Its size.
        by_tensor: Tensor → where the samples lie in it.
        loops: Op → its loops that run along the samples, as the outer part.
        inner: Ops that have the samples as the inner part of a loop, which is not cut with them.
        untracked: Ops in which the samples cannot be followed.
        tracked_by_elements: Ops through which samples are followed by their elements, not by loops.
    """

    samples: int
    by_tensor: Mapping[int, frozenset[BatchDim]]
    loops: Mapping[int, frozenset[int]]
    inner: frozenset[int]
    untracked: frozenset[int]
    tracked_by_elements: frozenset[int]

    def dims(self, tensor: int) -> frozenset[int]:
        """Dims of a tensor that the samples lie in."""
        return frozenset(dim for dim, _ in self.by_tensor.get(tensor, frozenset()))


def track_batch_dim(graph: OpGraph, tensor: int, dim: int) -> BatchDims:
    """All dims and loops that run along a dim of a tensor."""
    traversal = _Traversal(graph, graph.tensors[tensor].shape[dim])
    left = [(tensor, (dim, 1))]
    while left:
        at, batch_dim = left.pop()
        if batch_dim in traversal.by_tensor[at]:
            continue
        traversal.by_tensor[at].add(batch_dim)
        if graph.tensors[at].kind not in (TensorKind.PARAMETER, TensorKind.BUFFER):
            left += [found for op in _around(graph, at) for found in traversal.through(op, at, batch_dim)]
    by_tensor = {at: frozenset(found) for at, found in traversal.by_tensor.items()}
    loops = {op: frozenset(found) for op, found in traversal.loops.items()}
    return BatchDims(
        traversal.samples,
        by_tensor,
        loops,
        frozenset(traversal.inner),
        frozenset(traversal.untracked),
        frozenset(traversal.tracked_by_elements),
    )


@dataclass
class _Traversal:
    """Samples tracked so far; fields as in `BatchDims`."""

    graph: OpGraph
    samples: int
    by_tensor: dict[int, set[BatchDim]] = field(default_factory=lambda: defaultdict(set))
    loops: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    inner: set[int] = field(default_factory=set)
    untracked: set[int] = field(default_factory=set)
    tracked_by_elements: set[int] = field(default_factory=set)

    def through(self, op: Op, tensor: int, batch_dim: BatchDim) -> list[tuple[int, BatchDim]]:
        """Where the samples of a tensor lie in the others of an op."""
        if op.kind in VIEWS:
            return self._through_view(op, tensor, batch_dim)
        if op.kind == "index":
            return self._through_index(op, tensor, batch_dim)
        return self._by_loops(op, tensor, batch_dim)

    def _by_loops(self, op: Op, tensor: int, batch_dim: BatchDim) -> list[tuple[int, BatchDim]]:
        dim, before = batch_dim
        found = []
        for x in (*op.inputs, *op.outputs):
            loop = x.loops[dim] if x.tensor == tensor else None
            if loop is not None:
                found += self._along(op, loop, before, self.graph.tensors[tensor].shape[dim])
        return found

    def _along(self, op: Op, loop: int, before: int, size: int) -> list[tuple[int, BatchDim]]:
        """Return the dims that run along a loop."""
        if before > 1:
            self.inner.add(op.id)
        else:
            self.loops[op.id].add(loop)
        found = [(x.tensor, d) for x in (*op.inputs, *op.outputs) for d, at in enumerate(x.loops) if at == loop]
        sizes = {self.graph.tensors[tensor].shape[d] for tensor, d in found}
        if sizes != {size} or (before > 1 and op.loops[loop].size != size):
            self.untracked.add(op.id)
        return [(tensor, (d, before)) for tensor, d in found]

    def _through_view(self, op: Op, tensor: int, batch_dim: BatchDim) -> list[tuple[int, BatchDim]]:
        """Return the other side of a view: the same elements."""
        self.tracked_by_elements.add(op.id)
        sides = (*op.inputs[:1], *op.outputs)
        here = next(x for x in sides if x.tensor == tensor)
        shape = self.graph.tensors[tensor].shape
        loop = here.loops[batch_dim[0]]
        found = []
        for there in sides:
            if there.tensor == tensor:
                continue
            out = self.graph.tensors[there.tensor].shape
            there_dim = batch_dim_after_view(shape, out, batch_dim, self.samples)
            if there_dim is None:
                self.untracked.add(op.id)
                continue
            found.append((there.tensor, there_dim))
            if loop is not None and loop == there.loops[there_dim[0]] and batch_dim[1] == there_dim[1] == 1:
                self.loops[op.id].add(loop)
            else:
                self.inner.add(op.id)
        return found

    def _through_index(self, op: Op, tensor: int, batch_dim: BatchDim) -> list[tuple[int, BatchDim]]:
        """`x[arange(n), ...]`: each sample is indexed for itself; anything else is followed by its loops."""
        source = op.inputs[0]
        index = op.inputs[1:2]
        out = op.outputs[0]
        at = self._counted(index, source)
        if at is None or batch_dim[1] > 1 or batch_dim[0] not in {0 if tensor == source.tensor else at}:
            return self._by_loops(op, tensor, batch_dim)
        self.tracked_by_elements.add(op.id)
        self.loops[op.id].update(loop for loop in (out.loops[at],) if loop is not None)
        return [(source.tensor, (0, 1)), (out.tensor, (at, 1))]

    def _counted(self, index: Sequence[Operand], source: Operand) -> int | None:
        """Return the dim in which a first index counts through the first dim of what is indexed."""
        tensors = self.graph.tensors
        if not index or tensors[index[0].tensor].name != COUNTING:
            return None
        samples = [dim for dim, size in enumerate(tensors[index[0].tensor].shape) if size > 1]
        whole = tensors[index[0].tensor].numel == tensors[source.tensor].shape[0]
        return samples[0] if len(samples) == 1 and whole else None


def batch_dim_after_view(shape: Shape, out: Shape, batch_dim: BatchDim, samples: int) -> BatchDim | None:
    """Where samples lie after a view; None where they do not stay in one dim."""
    dim, before = batch_dim
    outside = prod(shape[:dim]) * before
    passed = 1
    for there, size in enumerate(out):
        whole = passed * size
        if size >= samples and outside % passed == 0 and whole % (outside * samples) == 0:
            return there, outside // passed
        passed = whole
    return None


def _around(graph: OpGraph, tensor: int) -> list[Op]:
    maker = graph.producers.get(tensor)
    ops = [*([] if maker is None else [maker]), *graph.consumers.get(tensor, ())]
    return [graph.ops[op] for op in ops]
