"""Costs of every strategy of an op: compute, kept activations, parameters.

All times of one microbatch unless named otherwise. Many ops are priced in one go: with so few strategies each, numpy's
calls would cost more than its work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats, Ints
from jupyter_autotrain.parallel.cost.activations import MODES, GraphAnalysis
from jupyter_autotrain.parallel.cost.collectives import Axis
from jupyter_autotrain.parallel.cost.layout import exchanged, input_layouts, output_layouts, shard_counts
from jupyter_autotrain.parallel.cost.roofline import Roofline, Work
from jupyter_autotrain.parallel.cost.states import ComputeTime, OpParameter, StatePricer, StateTable
from jupyter_autotrain.parallel.graph.graph import DTYPE_BYTES, Family, LoopRole, Op, Operand, OpGraph, TensorKind

SplitKey = tuple[int, tuple[int | None, ...]]  # op, loops of the operand
_TILED = frozenset({Family.MATMUL, Family.CONVOLUTION})


@dataclass(frozen=True, slots=True)
class OpTable:
    """One op: rows of `table` are its strategies; every array is per strategy (last dimension).

    Attributes:
        op: The op.
        table: (strategies, axes) loops, as `layout.strategies` gives them.
        forward_s: ComputeTime of the forward pass.
        backward_s: ComputeTime of the backward pass.
        recompute_s: (modes, strategies) forward compute run again.
        act_bytes: (modes, strategies) kept activations charged to the op.
        states: Parameters under each state sharding.
    """

    op: Op
    table: Ints
    forward_s: Floats
    backward_s: Floats
    recompute_s: Floats
    act_bytes: Floats
    states: StateTable


@dataclass(eq=False, slots=True)
class OpPricer:
    """Prices ops on one mesh, for one number of microbatches; attributes as of `model.CostModel`.

    `known_shard_counts` is where numbers of shards are kept, see `table_cache.ModelTables`.
    """

    graph: OpGraph
    graph_analysis: GraphAnalysis
    axes: tuple[Axis, ...]
    microbatches: int
    roofline: Roofline
    states: StatePricer
    known_shard_counts: dict[SplitKey, Ints]

    def tables(self, ops: Sequence[tuple[Op, Ints]]) -> list[OpTable]:
        """Tables of some ops, each with its strategies."""
        computed = self._compute(ops)
        asked = [
            (list(self._parameters(op, table)), compute, self.graph_analysis.repeats[op.id])
            for (op, table), compute in zip(ops, computed, strict=True)
        ]
        return [
            OpTable(
                op=op,
                table=table,
                forward_s=compute.forward_s,
                backward_s=compute.backward_s,
                recompute_s=np.outer(self.graph_analysis.recomputes[op.id], compute.forward_s),
                act_bytes=self._own_activations(op, table),
                states=states,
            )
            for (op, table), compute, states in zip(ops, computed, self.states.tables(asked), strict=True)
        ]

    def tensor_bytes(self, tensor: int) -> float:
        """Bytes of a whole tensor in one microbatch."""
        size = float(self.graph.tensors[tensor].size_bytes)
        return size / self.microbatches if tensor in self.graph_analysis.batched else size

    def shard_counts(self, op: Op, operand: Operand, table: Ints) -> Ints:
        """Return number of shards that each strategy cuts an operand into."""
        key = (op.id, operand.loops)
        if key not in self.known_shard_counts:
            self.known_shard_counts[key] = shard_counts(input_layouts(op, operand, table), self.axes)
        return self.known_shard_counts[key]

    def _compute(self, ops: Sequence[tuple[Op, Ints]]) -> list[ComputeTime]:
        """Roofline of the local work; the forward pass is one kernel, the backward pass two."""
        if not ops:
            return []
        passes = [work for op, table in ops for work in self._passes(op, table)]
        lengths = [len(work.flops) for work in passes]
        parts = [(work.flops, work.own_bytes, work.other_bytes) for work in passes]
        joined = Work(*map(np.concatenate, zip(*parts, strict=True)))
        half = np.repeat([self._is_half(op) for op, _ in ops for _ in range(2)], lengths)
        kernels = np.repeat([1, 2] * len(ops), lengths)
        seconds = np.split(self.roofline.seconds(joined, half=half, kernels=kernels), np.cumsum(lengths)[:-1])
        return [ComputeTime(*pair) for pair in zip(seconds[::2], seconds[1::2], strict=True)]

    def _passes(self, op: Op, table: Ints) -> Iterator[Work]:
        """Yield the forward pass touches each operand once, the backward pass twice (gradients of both operands)."""
        parts = shard_counts(table, self.axes) * self._batch_share(op) / self._fullest(op, table)
        tensors = [x for x in (*op.inputs, *op.outputs) if not self._is_looked_up(op, x)]
        whole = sum(float(self.graph.tensors[x.tensor].size_bytes) for x in tensors) or 1.0
        share = sum((self.local_bytes(op, x, table) for x in tensors), np.zeros(len(table))) / whole
        sides = ((op.flops_forward, op.bytes_forward), (op.flops_backward, op.bytes_backward))
        for touched, (flops, moved) in enumerate(sides, start=1):
            own = min(moved, touched * whole) if op.flops_forward else moved
            made = op.outputs[:1] if touched == 1 else op.inputs[:2]
            idle = self._wave_quantization_loss(op, made, table)
            inside = 1 / parts if op.family is Family.MOE else share  # rows of tokens, not a share of the weights
            yield Work(flops / parts / self._rate_share(op) * (1 + idle), own * share, (moved - own) * inside)

    def _fullest(self, op: Op, table: Ints) -> Floats | float:
        """Tokens of the rank with the fullest experts over the mean, by strategy; 1 where ranks have all experts."""
        loops = exchanged(op)
        if not loops:
            return 1.0
        split = np.isin(table, list(loops)).any(axis=1)
        return np.where(split, self.states.assumptions.imbalance, 1.0)

    def _rate_share(self, op: Op) -> float:
        return self.roofline.efficiency.attention if op.family is Family.ATTENTION else 1.0

    def _wave_quantization_loss(self, op: Op, made: Sequence[Operand], table: Ints) -> Floats:
        """Mean share that products idle, one for each of what they make."""
        idle = np.zeros(len(table))
        if op.family in _TILED and op.flops_forward:
            for operand in made:
                item = DTYPE_BYTES[self.graph.tensors[operand.tensor].dtype]
                idle += self.roofline.wave_quantization_loss(self.local_bytes(op, operand, table) / item) / len(made)
        return idle

    def _is_half(self, op: Op) -> bool:
        return not op.outputs or DTYPE_BYTES[self.graph.tensors[op.outputs[0].tensor].dtype] <= 2

    def _batch_share(self, op: Op) -> int:
        return self.microbatches if any(loop.role is LoopRole.BATCH for loop in op.loops) else 1

    def _is_looked_up(self, op: Op, operand: Operand) -> bool:
        """Tables of embeddings are not streamed, only their looked-up rows."""
        return op.family is Family.EMBEDDING and self.graph.tensors[operand.tensor].kind is TensorKind.PARAMETER

    def local_bytes(self, op: Op, operand: Operand, table: Ints) -> Floats:
        """Bytes of a tensor on a rank in one microbatch, as the strategies of an op have it."""
        return np.asarray(self.tensor_bytes(operand.tensor) / self.shard_counts(op, operand, table))

    def _own_activations(self, op: Op, table: Ints) -> Floats:
        held = np.zeros((len(MODES), len(table)))
        for tensor, shares in self.graph_analysis.own_shares.get(op.id, ()):
            operand = next(x for x in (*op.outputs, *op.inputs) if x.tensor == tensor)
            held += np.outer(shares, self.local_bytes(op, operand, table))
        extra = op.saved_extra_bytes + (0 if self.roofline.device.fuses else op.unfused_extra_bytes)
        if extra and op.outputs:
            out = op.outputs[0]
            batch = self.microbatches if out.tensor in self.graph_analysis.batched else 1
            local = extra / batch / self.shard_counts(op, out, table) * self._fullest(op, table)
            held += np.outer(self.graph_analysis.extra_shares[op.id], local)
        return held

    def _parameters(self, op: Op, table: Ints) -> Iterator[OpParameter]:
        charged = self.graph_analysis.charged_parameters[op.id]
        for operand in op.inputs:
            tensor = self.graph.tensors[operand.tensor]
            if tensor.id in charged and tensor.trainable:
                rows = (
                    self.local_bytes(op, op.outputs[0], table) if tensor.id in self.graph_analysis.looked_up else None
                )
                item = DTYPE_BYTES[tensor.dtype]
                yield OpParameter(tensor.numel, item, output_layouts(op, operand, table), rows, self.microbatches)
