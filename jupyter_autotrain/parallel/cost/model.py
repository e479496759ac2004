"""What every strategy of every op costs, and every change of layout between ops: the tables that the search reads.

All times of one microbatch unless named otherwise; a step runs `microbatches` of them. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.activations import MODES, GraphAnalysis, Shares, analyse_graph
from jupyter_autotrain.parallel.cost.collectives import Axis, Floats, axes_of
from jupyter_autotrain.parallel.cost.layout import Ints, Layouts, needed, produced, strategies
from jupyter_autotrain.parallel.cost.memory import Recompute, Zero
from jupyter_autotrain.parallel.cost.ops import OpPricer, OpTable
from jupyter_autotrain.parallel.cost.redistribution import Redistribution
from jupyter_autotrain.parallel.cost.roofline import Efficiency, Roofline
from jupyter_autotrain.parallel.cost.states import Assumptions, StatePricer, StateSharding
from jupyter_autotrain.parallel.graph.graph import LoopRole, Op, Operand, OpGraph

ALL_STATE_SHARDINGS = tuple(StateSharding(zero) for zero in Zero)


@dataclass(frozen=True, slots=True)
class Settings:
    """Constants of a prediction: kernels, training, and which ways to keep parameters are open."""

    efficiency: Efficiency = field(default_factory=Efficiency)
    assumptions: Assumptions = field(default_factory=Assumptions)
    options: tuple[StateSharding, ...] = ALL_STATE_SHARDINGS


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
    analysis: GraphAnalysis | None = None
    restrict: Restriction | None = None
    _rows: dict[int, Ints] = field(default_factory=dict, repr=False)
    _ops: dict[int, OpTable] = field(default_factory=dict, repr=False)
    _edges: dict[tuple[int, int], EdgeTable] = field(default_factory=dict, repr=False)
    _into: dict[int, list[EdgeTable]] = field(default_factory=dict, repr=False)
    _alike: dict[tuple[int, bytes], int] = field(default_factory=dict, repr=False)
    _alike_edges: dict[object, EdgeTable] = field(default_factory=dict, repr=False)
    _placed: dict[tuple[int, tuple[int | None, ...], bool], Layouts] = field(default_factory=dict, repr=False)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The mesh's axes with their links."""
        return axes_of(self.mesh, self.cluster)

    @cached_property
    def graph_analysis(self) -> GraphAnalysis:
        """Facts of the graph."""
        return self.analysis or analyse_graph(self.graph)

    @cached_property
    def roofline(self) -> Roofline:
        """The device."""
        return Roofline(self.device or self.cluster.device, self.settings.efficiency)

    @cached_property
    def redistribution(self) -> Redistribution:
        """Layout changes on this mesh."""
        return Redistribution(self.axes)

    @cached_property
    def pricer(self) -> OpPricer:
        """Ops on this mesh."""
        settings = self.settings
        states = StatePricer(self.axes, self.roofline, settings.assumptions, settings.options)
        return OpPricer(self.graph, self.graph_analysis, self.axes, self.microbatches, self.roofline, states)

    def loop_sizes(self, op: Op) -> tuple[int, ...]:
        """Sizes of an op's loops in one microbatch."""
        return tuple(loop.size // self.microbatches if loop.role is LoopRole.BATCH else loop.size for loop in op.loops)

    def tensor_bytes(self, tensor: int) -> float:
        """Bytes of a whole tensor in one microbatch."""
        return self.pricer.tensor_bytes(tensor)

    def op(self, op_id: int) -> OpTable:
        """The op's table; made once."""
        if op_id not in self._ops:
            self.price_ops([op_id])
            self._ops.setdefault(op_id, replace(self._ops[self.alike(op_id)], op=self.graph.ops[op_id]))
        return self._ops[op_id]

    def price_ops(self, ops: Iterable[int]) -> None:
        """Make the tables of some ops in one go, for `op` to find."""
        missing = [first for first in dict.fromkeys(map(self.alike, ops)) if first not in self._ops]
        tables = self.pricer.tables([(self.graph.ops[first], self.table_rows(first)) for first in missing])
        self._ops.update(zip(missing, tables, strict=True))

    def price_edges(self, ops: Sequence[int]) -> None:
        """Work out what the edges into some ops need in one go, for `edges_into` to find."""
        edges = [(x, maker, op) for op in ops for x, maker in self._read(op) if (x.tensor, op) not in self._edges]
        self.price_ops({op for _, maker, reader in edges for op in (maker, reader)})
        self.redistribution.prepare(self.tensor_bytes(x.tensor) for x, _, _ in edges)

    def alike(self, op_id: int) -> int:
        """The first op seen that costs the same: the twin of an op in a run; elsewhere one of equal form and rows."""
        twin = self.twin(op_id)
        form = self.graph_analysis.forms.get(twin)
        if form is None:
            return twin
        return self._alike.setdefault((form, self.table_rows(twin).tobytes()), twin)

    def forget(self) -> None:
        """Drop all tables; they are made again when asked for."""
        for made in (self._ops, self._edges, self._into, self._alike_edges, self._placed):
            made.clear()
        self.pricer.forget()

    def twin(self, op_id: int) -> int:
        """The op in the first block of its run that costs the same."""
        return self.graph_analysis.twins.get(op_id, op_id)

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
        if op_id not in self._into:
            self._into[op_id] = [self._edge(operand, maker, op_id) for operand, maker in self._read(op_id)]
        return self._into[op_id]

    def _read(self, op_id: int) -> Iterable[tuple[Operand, int]]:
        """What an op reads of other ops, and who makes it; the same tensor once."""
        graph_analysis = self.graph_analysis.made
        made = {x: self.graph.producers[x.tensor] for x in self.graph.ops[op_id].inputs if x.tensor in graph_analysis}
        return made.items()

    def _edge(self, operand: Operand, maker: int, op_id: int) -> EdgeTable:
        key = (operand.tensor, op_id)
        if key not in self._edges:
            self._edges[key] = self._twin_edge(operand, maker, op_id) or self._alike_edge(operand, maker, op_id)
        return self._edges[key]

    def _alike_edge(self, operand: Operand, maker: int, op_id: int) -> EdgeTable:
        """The same edge between other ops, where there was one."""
        ops = self.graph.ops
        tensor = operand.tensor
        key = (
            (self.alike(maker), next(i for i, x in enumerate(ops[maker].outputs) if x.tensor == tensor)),
            (self.alike(op_id), ops[op_id].inputs.index(operand)),
            tensor in self.graph_analysis.differentiable,
            self.graph_analysis.edge_shares.get((tensor, op_id)),
        )
        if key not in self._alike_edges:
            self._alike_edges[key] = self._price_edge(operand, maker, op_id)
        return replace(self._alike_edges[key], tensor=tensor, source=maker, target=op_id)

    def _twin_edge(self, operand: Operand, maker: int, op_id: int) -> EdgeTable | None:
        """The same edge in the first block, when both ends lie in one block."""
        twin = self.twin(op_id)
        source = self.twin(maker)
        if twin == op_id or op_id - twin != maker - source:
            return None
        same = self.graph.ops[twin].inputs[self.graph.ops[op_id].inputs.index(operand)]
        if self.graph.producers.get(same.tensor) != source:  # the ends lie in blocks of two runs
            return None
        return replace(self._edge(same, source, twin), tensor=operand.tensor, source=maker, target=op_id)

    def _moves(self, operand: Operand, maker: int, op_id: int) -> list[tuple[Layouts, Layouts, float]]:
        """The tensor forward; where it has a gradient, that back, and the tensor gathered again."""
        source = self.op(maker)
        target = self.op(op_id)
        out = _output(source.op, operand.tensor)
        size = self.tensor_bytes(operand.tensor)
        lies = self._layouts(source, out, produced)
        wanted = self._layouts(target, operand, needed)
        if operand.tensor not in self.graph_analysis.differentiable:
            return [(lies, wanted, size)]
        gradient = self._layouts(target, operand, produced)
        whole = lies.reduced
        return [(lies, wanted, size), (gradient, whole, size), (whole, wanted, size)]

    def _price_edge(self, operand: Operand, maker: int, op_id: int) -> EdgeTable:
        source = self.op(maker)
        target = self.op(op_id)
        forward, *others = (self.redistribution.seconds(*move) for move in self._moves(operand, maker, op_id))
        backward = np.zeros_like(forward)
        if others:
            gradient, again = others
            # A gathered input is kept as a slice and gathered again behind the backward products, which it slows.
            backward = gradient.T + self.settings.assumptions.overlap_slowdown * again
        shares: Shares = self.graph_analysis.edge_shares.get((operand.tensor, target.op.id), (0.0, 0.0, 0.0))
        before = self.pricer.split(source.op, _output(source.op, operand.tensor), source.table)
        after = self.pricer.split(target.op, operand, target.table)
        size = self.tensor_bytes(operand.tensor)
        kept = np.multiply.outer(np.array(shares), size / np.maximum(before[:, None], after[None, :]))
        return EdgeTable(operand.tensor, source.op.id, target.op.id, forward, backward, kept)

    def _layouts(self, table: OpTable, operand: Operand, placed: Callable[[Op, Operand, Ints], Ints]) -> Layouts:
        key = (self.alike(table.op.id), operand.loops, placed is produced)
        if key not in self._placed:
            self._placed[key] = Layouts.of(placed(table.op, operand, table.table))
        return self._placed[key]


def _output(op: Op, tensor: int) -> Operand:
    return next(x for x in op.outputs if x.tensor == tensor)


def mode_index(mode: Recompute) -> int:
    """Row of a recompute mode in the tables."""
    return MODES.index(mode)
