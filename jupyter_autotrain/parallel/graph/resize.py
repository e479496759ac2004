"""A graph for another batch or another length of sequences, without tracing again.

Loops of role `BATCH` and `SEQUENCE` grow, dims along them with them; a dim that holds samples and positions together
(a merged one) grows with both. Work is proportional to the iterations of an op's nest, bytes to its tensors. What the
model computes of its own sizes (a table of positions with a row for each) does not grow. Time linear in the graph.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace

from jupyter_autotrain.parallel.graph.graph import Loop, LoopRole, Op, Operand, OpGraph, Tensor, TensorKind
from jupyter_autotrain.parallel.graph.roles import input_roles


@dataclass(frozen=True, slots=True)
class Extent:
    """The sizes that inputs have; None where it is not known which dims are meant.

    Attributes:
        batch: Samples.
        sequence: Positions of each.
    """

    batch: int | None
    sequence: int | None


def extent_of(graph: OpGraph) -> Extent:
    """Return batch and sequence of a graph's inputs; no sequence where weights have an element for each position."""
    loops = [loop.size for op in graph.ops for loop in op.loops if loop.role is LoopRole.BATCH]
    batch = math.gcd(*loops) or None
    along = {(x.tensor, dim) for op in graph.ops for x in op.inputs for dim in _dims(op, x, LoopRole.SEQUENCE)}
    tensors = [graph.tensors[tensor] for tensor, _ in along]
    if any(tensor.kind is TensorKind.PARAMETER for tensor in tensors):
        return Extent(batch, None)
    of_inputs = [graph.tensors[t].shape[dim] for t, dim in along if graph.tensors[t].kind is TensorKind.INPUT]
    return Extent(batch, max(of_inputs, default=None))


def resized(graph: OpGraph, extent: Extent) -> OpGraph:
    """Return the graph for other sizes; what is None in `extent` stays, as does what the graph does not tell."""
    now = extent_of(graph)
    samples = _ratio(extent.batch, now.batch)
    positions = _ratio(extent.sequence, now.sequence)
    if samples == positions == 1.0:
        return graph
    growth = _Growth(samples, positions, now.batch or 1, now.sequence or 0)
    growth.follow(graph)
    tensors = tuple(map(growth.tensor, graph.tensors))
    ops = tuple(_resized_op(op, graph.tensors, tensors, growth) for op in graph.ops)
    return replace(graph, ops=ops, tensors=tensors)


def _ratio(wanted: int | None, now: int | None) -> float:
    return 1.0 if wanted is None or now is None else wanted / now


class _Growth:
    """The dims that grow, and by which factors.

    Args:
        samples: Factor of the batch.
        positions: Factor of the sequence.
        batch: Samples before.
        sequence: Positions before; 0 where they are not known.
    """

    def __init__(self, samples: float, positions: float, batch: int, sequence: int) -> None:
        self._samples = samples
        self._positions = positions
        self._batch = batch
        self._sequence = sequence
        self._along_samples: set[tuple[int, int]] = set()
        self._along_positions: set[tuple[int, int]] = set()

    def follow(self, graph: OpGraph) -> None:
        """Find the dims that grow: by role, by a loop that they share, and positions behind a view by their size."""
        for tensor in graph.tensors:
            roles = input_roles(tensor) if tensor.kind is TensorKind.INPUT else ()
            for dim, role in enumerate(roles):
                if role is LoopRole.SEQUENCE and tensor.shape[dim] == self._sequence:
                    self._along_positions.add((tensor.id, dim))
        for ops in (graph.ops, reversed(graph.ops), graph.ops):
            for op in ops:
                self._follow_loops(graph, op)
                if self._sequence:
                    self._follow_view(graph, op)

    def _follow_loops(self, graph: OpGraph, op: Op) -> None:
        """Let dims of equal size along one loop grow alike."""
        by_size: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for x in (*op.inputs, *op.outputs):
            tensor = graph.tensors[x.tensor]
            if tensor.kind is not TensorKind.PARAMETER:
                for dim, at in enumerate(x.loops):
                    if at is not None and tensor.shape[dim] > 1:
                        by_size[at, tensor.shape[dim]].append((tensor.id, dim))
        for (index, size), dims in by_size.items():
            loop = op.loops[index]
            has_samples = loop.role is LoopRole.BATCH
            has_positions = loop.role is LoopRole.SEQUENCE and size == loop.size
            if self._sequence and has_samples:
                has_positions = size % (self._batch * self._sequence) == 0
            if has_samples or not self._along_samples.isdisjoint(dims):
                self._along_samples.update(dims)
            if has_positions or not self._along_positions.isdisjoint(dims):
                self._along_positions.update(dims)

    def _follow_view(self, graph: OpGraph, op: Op) -> None:
        """Find the positions of a tensor of which no loop tells, where another one of the op has them."""
        made = [x for x in (*op.inputs, *op.outputs) if graph.tensors[x.tensor].kind is TensorKind.ACTIVATION]
        if not any(self._has_positions(graph.tensors[x.tensor]) for x in made):
            return
        for x in made:
            tensor = graph.tensors[x.tensor]
            if self._has_positions(tensor):
                continue
            for dim, loop in enumerate(x.loops):
                is_open = loop is None or op.loops[loop].role is LoopRole.OTHER
                if is_open and tensor.shape[dim] == self._sequence:
                    self._along_positions.add((tensor.id, dim))
                    break

    def _has_positions(self, tensor: Tensor) -> bool:
        return any((tensor.id, dim) in self._along_positions for dim in range(len(tensor.shape)))

    def tensor(self, tensor: Tensor) -> Tensor:
        """Return a tensor in its new shape."""
        shape = tuple(round(size * self.dim(tensor.id, dim)) for dim, size in enumerate(tensor.shape))
        return tensor if shape == tensor.shape else replace(tensor, shape=shape)

    def dim(self, tensor: int, dim: int) -> float:
        """Return the factor of a dim."""
        samples = self._samples if (tensor, dim) in self._along_samples else 1.0
        return samples * (self._positions if (tensor, dim) in self._along_positions else 1.0)

    def loop(self, op: Op, index: int, tensors: tuple[Tensor, ...]) -> float:
        """Return the factor of a loop: that of the dims that it is all of; samples may be the outer part of one."""
        loop = op.loops[index]
        for x in (*op.inputs, *op.outputs):
            for dim, at in enumerate(x.loops):
                if at == index and tensors[x.tensor].shape[dim] == loop.size > 1:
                    return self.dim(x.tensor, dim)
        return self._samples if loop.role is LoopRole.BATCH else 1.0


def _resized_op(op: Op, before: tuple[Tensor, ...], after: tuple[Tensor, ...], growth: _Growth) -> Op:
    factors = [growth.loop(op, index, before) for index in range(len(op.loops))]
    loops = tuple(map(_resized_loop, op.loops, factors))
    moved = _bytes(op, after) / max(_bytes(op, before), 1)
    made = 1.0
    along = 1.0
    if op.outputs:
        out = op.outputs[0]
        made = after[out.tensor].numel / max(before[out.tensor].numel, 1)
        along = math.prod(factors[loop] for loop in set(out.loops) if loop is not None)
    work = math.prod(factors) * made / along  # a dim without a loop, or of which a loop is the outer part
    return replace(
        op,
        loops=loops,
        flops_forward=op.flops_forward * work,
        flops_backward=op.flops_backward * work,
        bytes_forward=op.bytes_forward * moved,
        bytes_backward=op.bytes_backward * moved,
        saved_extra_bytes=round(op.saved_extra_bytes * made),
        unfused_extra_bytes=round(op.unfused_extra_bytes * work),
    )


def _resized_loop(loop: Loop, factor: float) -> Loop:
    return loop if factor == 1.0 else replace(loop, size=max(1, round(loop.size * factor)))


def _bytes(op: Op, tensors: tuple[Tensor, ...]) -> int:
    return sum(tensors[x.tensor].size_bytes for x in (*op.inputs, *op.outputs))


def _dims(op: Op, x: Operand, role: LoopRole) -> list[int]:
    return [dim for dim, loop in enumerate(x.loops) if loop is not None and op.loops[loop].role is role]
