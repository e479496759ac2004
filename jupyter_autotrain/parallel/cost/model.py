"""What every strategy of every op costs, and every change of layout between ops: the tables that the search reads.

All times of one microbatch unless named otherwise; a step runs `microbatches` of them. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.activations import MODES, Facts, Shares, facts_of
from jupyter_autotrain.parallel.cost.collectives import Axis, Floats, axes_of
from jupyter_autotrain.parallel.cost.layout import (
    Ints,
    Layouts,
    Redistribution,
    needed,
    produced,
    split_of,
    strategies,
)
from jupyter_autotrain.parallel.cost.memory import Recompute, Zero
from jupyter_autotrain.parallel.cost.roofline import Efficiency, Roofline, Work
from jupyter_autotrain.parallel.cost.states import Assumptions, Compute, Option, StatePricer, StateTable, Weights
from jupyter_autotrain.parallel.graph.graph import DTYPE_BYTES, Family, LoopRole, Op, Operand, OpGraph, TensorKind

ALL_OPTIONS = tuple(Option(zero) for zero in Zero)


@dataclass(frozen=True, slots=True)
class Settings:
    """Constants of a prediction: kernels, training, and which ways to keep parameters are open."""

    efficiency: Efficiency = field(default_factory=Efficiency)
    assumptions: Assumptions = field(default_factory=Assumptions)
    options: tuple[Option, ...] = ALL_OPTIONS


@dataclass(frozen=True, slots=True)
class OpTable:
    """One op: rows of `table` are its strategies; every array is per strategy (last dimension).

    Attributes:
        op: The op.
        table: (strategies, axes) loops, as `layout.strategies` gives them.
        forward_s: Compute of the forward pass.
        backward_s: Compute of the backward pass.
        again_s: (modes, strategies) forward compute run again.
        act_bytes: (modes, strategies) kept activations charged to the op.
        states: Parameters under each option.
    """

    op: Op
    table: Ints
    forward_s: Floats
    backward_s: Floats
    again_s: Floats
    act_bytes: Floats
    states: StateTable

    def placements(self, operand: Operand) -> Ints:
        """Codes of an input (as needed) or an output (as produced) under each strategy."""
        if operand in self.op.outputs:
            return produced(self.op, operand, self.table)
        return needed(self.op, operand, self.table)


@dataclass(frozen=True, slots=True)
class EdgeTable:
    """One tensor from `source` to `target`; arrays are (source strategies, target strategies).

    `forward_s` and `backward_s` change the layout of the tensor and of its gradient; `act_bytes` has a leading
    dimension for the recompute modes.
    """

    tensor: int
    source: int
    target: int
    forward_s: Floats
    backward_s: Floats
    act_bytes: Floats


Restriction = Callable[[Op, Ints], Ints]


@dataclass(frozen=True)
class CostModel:
    """Prices strategies of a graph on one mesh, for one number of microbatches.

    Args:
        graph: The model.
        cluster: For link speeds.
        mesh: Axes over the devices of one pipeline stage.
        microbatches: Parts that the batch is cut into; must divide it.
        settings: Constants.
        device: Figures to compute with; the cluster's weakest unless given.
        facts: `facts_of(graph)` when already known.
        restrict: Keeps some rows of an op's strategy table (pins, baselines); asked for the first block of a run,
            it holds for all.
    """

    graph: OpGraph
    cluster: ClusterSpec
    mesh: MeshSpec
    microbatches: int = 1
    settings: Settings = field(default_factory=Settings)
    device: Device | None = None
    facts: Facts | None = None
    restrict: Restriction | None = None
    _rows: dict[int, Ints] = field(default_factory=dict, repr=False)
    _ops: dict[int, OpTable] = field(default_factory=dict, repr=False)
    _edges: dict[tuple[int, int], EdgeTable] = field(default_factory=dict, repr=False)
    _alike: dict[tuple[int, bytes], int] = field(default_factory=dict, repr=False)
    _alike_edges: dict[object, EdgeTable] = field(default_factory=dict, repr=False)
    _splits: dict[tuple[int, tuple[int | None, ...]], Ints] = field(default_factory=dict, repr=False)
    _placed: dict[tuple[int, tuple[int | None, ...], bool], Layouts] = field(default_factory=dict, repr=False)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The mesh's axes with their links."""
        return axes_of(self.mesh, self.cluster)

    @cached_property
    def known(self) -> Facts:
        """Facts of the graph."""
        return self.facts or facts_of(self.graph)

    @cached_property
    def roofline(self) -> Roofline:
        """The device."""
        return Roofline(self.device or self.cluster.device, self.settings.efficiency)

    @cached_property
    def redistribution(self) -> Redistribution:
        """Layout changes on this mesh."""
        return Redistribution(self.axes)

    @cached_property
    def pricer(self) -> StatePricer:
        """Parameter states on this mesh."""
        return StatePricer(self.axes, self.roofline, self.settings.assumptions, self.settings.options)

    def loop_sizes(self, op: Op) -> tuple[int, ...]:
        """Sizes of an op's loops in one microbatch."""
        return tuple(loop.size // self.microbatches if loop.role is LoopRole.BATCH else loop.size for loop in op.loops)

    def tensor_bytes(self, tensor: int) -> float:
        """Bytes of a whole tensor in one microbatch."""
        size = float(self.graph.tensors[tensor].size_bytes)
        return size / self.microbatches if tensor in self.known.batched else size

    def op(self, op_id: int) -> OpTable:
        """The op's table; made once."""
        if op_id not in self._ops:
            first, op = self.alike(op_id), self.graph.ops[op_id]
            same = first != op_id
            self._ops[op_id] = replace(self.op(first), op=op) if same else self._price(op, self.table_rows(op_id))
        return self._ops[op_id]

    def alike(self, op_id: int) -> int:
        """The first op seen that costs the same: the twin of an op in a run; elsewhere one of equal form and rows."""
        twin = self.twin(op_id)
        form = self.known.forms.get(twin)
        if form is None:
            return twin
        return self._alike.setdefault((form, self.table_rows(twin).tobytes()), twin)

    def forget(self) -> None:
        """Drop all tables; they are made again when asked for."""
        for made in (self._ops, self._edges, self._alike_edges, self._splits, self._placed):
            made.clear()

    def twin(self, op_id: int) -> int:
        """The op in the first block of its run that costs the same."""
        return self.known.twins.get(op_id, op_id)

    def table_rows(self, op_id: int) -> Ints:
        """The op's strategies without pricing them; rows as in `op(op_id).table`."""
        twin = self.twin(op_id)
        if twin not in self._rows:
            op = self.graph.ops[twin]
            table = strategies(op, self.loop_sizes(op), self.mesh.shape)
            self._rows[twin] = self.restrict(op, table) if self.restrict else table
        return self._rows[twin]

    def edges_into(self, op_id: int) -> list[EdgeTable]:
        """Tables of all tensors that other ops make and this op reads."""
        made = [(x, self.graph.producers[x.tensor]) for x in self.graph.ops[op_id].inputs if x.tensor in self._made]
        return [self._edge(operand, maker, op_id) for operand, maker in dict(made).items()]

    @cached_property
    def _made(self) -> frozenset[int]:
        return self.known.made

    def _price(self, op: Op, table: Ints) -> OpTable:
        forward, backward = self._compute(op, table)
        return OpTable(
            op=op,
            table=table,
            forward_s=forward,
            backward_s=backward,
            again_s=np.outer(self.known.again[op.id], forward),
            act_bytes=self._own_activations(op, table),
            states=self.pricer.table(
                list(self._weights(op, table)), Compute(forward, backward), self.known.repeats[op.id]
            ),
        )

    def _compute(self, op: Op, table: Ints) -> tuple[Floats, Floats]:
        """Roofline of the local work, forward and backward."""
        parts = split_of(table, self.axes) * self._batch_share(op)
        tensors = [x for x in (*op.inputs, *op.outputs) if not self._is_looked_up(op, x)]
        whole = sum(float(self.graph.tensors[x.tensor].size_bytes) for x in tensors) or 1.0
        local = sum((self._local_bytes(op, x, table) for x in tensors), np.zeros(len(table)))
        half = DTYPE_BYTES[self.graph.tensors[op.outputs[0].tensor].dtype] <= 2 if op.outputs else True

        def seconds(flops: float, moved: float, passes: int) -> Floats:
            """The forward pass touches each operand once, the backward pass twice (gradients of both operands)."""
            own = min(moved, passes * whole) if op.flops_forward else moved
            work = Work(flops / parts, own * local / whole, (moved - own) * local / whole)
            return self.roofline.seconds(work, half=half, kernels=passes)

        return seconds(op.flops_forward, op.bytes_forward, 1), seconds(op.flops_backward, op.bytes_backward, 2)

    def _batch_share(self, op: Op) -> int:
        return self.microbatches if any(loop.role is LoopRole.BATCH for loop in op.loops) else 1

    def _is_looked_up(self, op: Op, operand: Operand) -> bool:
        """Tables of embeddings are not streamed, only their looked-up rows."""
        return op.family is Family.EMBEDDING and self.graph.tensors[operand.tensor].kind is TensorKind.PARAMETER

    def _local_bytes(self, op: Op, operand: Operand, table: Ints) -> Floats:
        return np.asarray(self.tensor_bytes(operand.tensor) / self._split(op, operand, table))

    def _split(self, op: Op, operand: Operand, table: Ints) -> Ints:
        key = (op.id, operand.loops)
        if key not in self._splits:
            self._splits[key] = split_of(needed(op, operand, table), self.axes)
        return self._splits[key]

    def _own_activations(self, op: Op, table: Ints) -> Floats:
        held = np.zeros((len(MODES), len(table)))
        for tensor, shares in self.known.own_shares.get(op.id, ()):
            operand = next(x for x in (*op.outputs, *op.inputs) if x.tensor == tensor)
            held += np.outer(shares, self._local_bytes(op, operand, table))
        if op.saved_extra_bytes and op.outputs:
            out = op.outputs[0]
            batch = self.microbatches if out.tensor in self.known.batched else 1
            local = op.saved_extra_bytes / batch / self._split(op, out, table)
            held += np.outer(self.known.extra_shares[op.id], local)
        return held

    def _weights(self, op: Op, table: Ints) -> Iterable[Weights]:
        charged = self.known.charged_parameters[op.id]
        for operand in op.inputs:
            tensor = self.graph.tensors[operand.tensor]
            if tensor.id in charged and tensor.trainable:
                rows = self._local_bytes(op, op.outputs[0], table) if tensor.id in self.known.looked_up else None
                item = DTYPE_BYTES[tensor.dtype]
                yield Weights(tensor.numel, item, produced(op, operand, table), rows, self.microbatches)

    def _edge(self, operand: Operand, maker: int, op_id: int) -> EdgeTable:
        key = (operand.tensor, op_id)
        if key not in self._edges:
            self._edges[key] = self._twin_edge(operand, maker, op_id) or self._alike_edge(operand, maker, op_id)
        return self._edges[key]

    def _alike_edge(self, operand: Operand, maker: int, op_id: int) -> EdgeTable:
        """The same edge between other ops, where there was one."""
        ops, tensor = self.graph.ops, operand.tensor
        key = (
            (self.alike(maker), next(i for i, x in enumerate(ops[maker].outputs) if x.tensor == tensor)),
            (self.alike(op_id), ops[op_id].inputs.index(operand)),
            tensor in self.known.differentiable,
            self.known.edge_shares.get((tensor, op_id)),
        )
        if key not in self._alike_edges:
            self._alike_edges[key] = self._price_edge(operand, maker, op_id)
        return replace(self._alike_edges[key], tensor=tensor, source=maker, target=op_id)

    def _twin_edge(self, operand: Operand, maker: int, op_id: int) -> EdgeTable | None:
        """The same edge in the first block, when both ends lie in one block."""
        twin, source = self.twin(op_id), self.twin(maker)
        if twin == op_id or op_id - twin != maker - source:
            return None
        same = self.graph.ops[twin].inputs[self.graph.ops[op_id].inputs.index(operand)]
        if self.graph.producers.get(same.tensor) != source:  # the ends lie in blocks of two runs
            return None
        return replace(self._edge(same, source, twin), tensor=operand.tensor, source=maker, target=op_id)

    def _price_edge(self, operand: Operand, maker: int, op_id: int) -> EdgeTable:
        source, target = self.op(maker), self.op(op_id)
        out = next(x for x in source.op.outputs if x.tensor == operand.tensor)
        lies, wanted = self._layouts(source, out, produced), self._layouts(target, operand, needed)
        size = self.tensor_bytes(operand.tensor)
        forward = self.redistribution.seconds(lies, wanted, size)
        backward = np.zeros_like(forward)
        if operand.tensor in self.known.differentiable:
            gradient, whole = self._layouts(target, operand, produced), lies.reduced
            # A gathered input is kept as a slice and gathered again behind the backward products, which it slows.
            again = self.redistribution.seconds(whole, wanted, size)
            backward = self.redistribution.seconds(gradient, whole, size).T
            backward = backward + self.settings.assumptions.overlap_slowdown * again
        shares: Shares = self.known.edge_shares.get((operand.tensor, target.op.id), (0.0, 0.0, 0.0))
        before, after = self._split(source.op, out, source.table), self._split(target.op, operand, target.table)
        kept = np.multiply.outer(np.array(shares), size / np.maximum(before[:, None], after[None, :]))
        return EdgeTable(operand.tensor, source.op.id, target.op.id, forward, backward, kept)

    def _layouts(self, table: OpTable, operand: Operand, placed: Callable[[Op, Operand, Ints], Ints]) -> Layouts:
        key = (table.op.id, operand.loops, placed is produced)
        if key not in self._placed:
            self._placed[key] = Layouts.of(placed(table.op, operand, table.table))
        return self._placed[key]


def mode_index(mode: Recompute) -> int:
    """Row of a recompute mode in the tables."""
    return MODES.index(mode)
