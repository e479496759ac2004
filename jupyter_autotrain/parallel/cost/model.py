"""Tables that the search reads: costs of every strategy of every op, and of every change of layout between ops.

All times of one microbatch unless named otherwise; a step runs `microbatches` of them. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.arrays import Ints
from jupyter_autotrain.parallel.cost.activations import MODES, GraphAnalysis, analyse_graph
from jupyter_autotrain.parallel.cost.collectives import Axis, axes_of
from jupyter_autotrain.parallel.cost.layout import NONE, strategies
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.cost.ops import OpPricer, OpTable
from jupyter_autotrain.parallel.cost.redistribution import EdgeEnd, EdgePricer, EdgeTable, Redistribution
from jupyter_autotrain.parallel.cost.roofline import Efficiency, Roofline
from jupyter_autotrain.parallel.cost.states import Assumptions, StatePricer, StateSharding
from jupyter_autotrain.parallel.cost.table_cache import ModelTables
from jupyter_autotrain.parallel.graph.graph import LoopRole, Op, Operand, OpGraph

ALL_STATE_SHARDINGS = tuple(map(StateSharding, ZeroLevel))


@dataclass(frozen=True, slots=True)
class Settings:
    """Constants of a prediction: kernels, training, and which ways to keep parameters are open."""

    efficiency: Efficiency = field(default_factory=Efficiency)
    assumptions: Assumptions = field(default_factory=Assumptions)
    state_shardings: tuple[StateSharding, ...] = ALL_STATE_SHARDINGS


Restriction = Callable[[Op, Ints], Ints]


@dataclass(eq=False)
class CostModel:
    """Prices strategies of a graph on one mesh, for one number of microbatches.

    Args:
        graph: The model.
        cluster: For link speeds.
        mesh: Axes over the devices of one pipeline stage.
        microbatches: Parts that the batch is cut into; must divide it.
        settings: Constants.
        device: Figures to compute with; the cluster's weakest unless given.
        analysis: `analyse_graph(graph)` when already known.
        restrict: Keeps some rows of an op's strategy table (pins, baselines); called for the first block of a
            run, it holds for all.
        tables: Where its tables are kept; see `table_cache`.

    Attributes:
        axes: The mesh's axes with their links.
        graph_analysis: What is known of the graph.
        roofline: The device.
        op_pricer: Prices ops on this mesh.
        edge_pricer: Prices edges on this mesh.
    """

    graph: OpGraph
    cluster: ClusterSpec
    mesh: MeshSpec
    microbatches: int = 1
    settings: Settings = field(default_factory=Settings)
    device: Device | None = None
    analysis: GraphAnalysis | None = None
    restrict: Restriction | None = None
    tables: ModelTables = field(default_factory=ModelTables, repr=False)
    axes: tuple[Axis, ...] = field(init=False, repr=False)
    graph_analysis: GraphAnalysis = field(init=False, repr=False)
    roofline: Roofline = field(init=False, repr=False)
    op_pricer: OpPricer = field(init=False, repr=False)
    edge_pricer: EdgePricer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        assumptions = self.settings.assumptions
        axes = axes_of(self.mesh, self.cluster)
        analysis = self.analysis or analyse_graph(self.graph)
        roofline = Roofline(self.device or self.cluster.device, self.settings.efficiency)
        states = StatePricer(axes, roofline, assumptions, self.settings.state_shardings)
        ops = OpPricer(self.graph, analysis, axes, self.microbatches, roofline, states, self.tables.shard_counts)
        redistribution = Redistribution(axes, assumptions, self.tables.redistribution_s)
        self.axes = axes
        self.graph_analysis = analysis
        self.roofline = roofline
        self.op_pricer = ops
        self.edge_pricer = EdgePricer(analysis, ops, redistribution, assumptions.overlap_slowdown, self.tables.layouts)

    def loop_sizes(self, op: Op) -> tuple[int, ...]:
        """Sizes of an op's loops in one microbatch."""
        return tuple(loop.size // self.microbatches if loop.role is LoopRole.BATCH else loop.size for loop in op.loops)

    def tensor_bytes(self, tensor: int) -> float:
        """Bytes of a whole tensor in one microbatch."""
        return self.op_pricer.tensor_bytes(tensor)

    def op(self, op_id: int) -> OpTable:
        """Return the op's table; made once."""
        return self.tables.ops.get(op_id) or self._make_op(op_id)

    def _make_op(self, op_id: int) -> OpTable:
        self.price_ops([op_id])
        tables = self.tables.ops
        return tables.setdefault(op_id, replace(tables[self.cost_representative(op_id)], op=self.graph.ops[op_id]))

    def price_ops(self, ops: Iterable[int]) -> None:
        """Make the tables of some ops in one go, for `op` to find."""
        known = self.tables.ops
        missing = [first for first in dict.fromkeys(map(self.cost_representative, ops)) if first not in known]
        tables = self.op_pricer.tables([(self.graph.ops[first], self.table_rows(first)) for first in missing])
        known.update(zip(missing, tables, strict=True))

    def price_edges(self, ops: Sequence[int]) -> None:
        """Work out what the edges into some ops need in one go, for `edges_into` to find."""
        known = self.tables.edges
        edges = [(x, maker, op) for op in ops for x, maker in self._read(op) if (x.tensor, op) not in known]
        self.price_ops({op for _, maker, reader in edges for op in (maker, reader)})
        self.edge_pricer.redistribution.prepare(self.tensor_bytes(x.tensor) for x, _, _ in edges)

    def cost_representative(self, op_id: int) -> int:
        """Return the first op seen that costs the same.

        It lies in the first block of a run, or has equal form and rows.
        """
        representative = self.block_representative(op_id)
        form = self.graph_analysis.forms.get(representative)
        if form is None:
            return representative
        return self.tables.representatives.setdefault((form, self.table_rows(representative).tobytes()), representative)

    def block_representative(self, op_id: int) -> int:
        """Return the op in the first block of its run that costs the same."""
        return self.graph_analysis.block_representatives.get(op_id, op_id)

    def table_rows(self, op_id: int) -> Ints:
        """Return the op's strategies without pricing them; rows as in `op(op_id).table`."""
        representative = self.block_representative(op_id)
        known = self.tables.strategies
        if representative not in known:
            op = self.graph.ops[representative]
            table = strategies(op, self.loop_sizes(op), self.mesh.shape)
            known[representative] = self.restrict(op, table) if self.restrict else table
        return known[representative]

    def splits_every_op(self) -> bool:
        """Return whether each op has a strategy; pins may leave it without one on this mesh."""
        return self.restrict is None or all(len(self.table_rows(op.id)) for op in self.graph.ops)

    def split_loops(self, op_id: int, row: int) -> tuple[int | None, ...]:
        """Return the loop that a strategy splits along each mesh axis, by its index in `Op.loops`; None for whole."""
        return tuple(None if loop == NONE else loop for loop in self.table_rows(op_id)[row].tolist())

    def row_of(self, op_id: int, loops: Sequence[int | None]) -> int:
        """Return the row of a strategy, the reverse of `split_loops`."""
        wanted = [NONE if loop is None else loop for loop in loops]
        return int(np.flatnonzero((self.table_rows(op_id) == np.array(wanted)).all(axis=1))[0])

    def edges_into(self, op_id: int) -> list[EdgeTable]:
        """Tables of all tensors that other ops make and this op reads."""
        known = self.tables.edges_into
        if op_id not in known:
            known[op_id] = [self._edge(operand, maker, op_id) for operand, maker in self._read(op_id)]
        return known[op_id]

    def _read(self, op_id: int) -> Iterable[tuple[Operand, int]]:
        """Return what an op reads of other ops, and who makes it; the same tensor once."""
        made = self.graph_analysis.made
        producers = self.graph.producers
        return {x: producers[x.tensor] for x in self.graph.ops[op_id].inputs if x.tensor in made}.items()

    def _edge(self, operand: Operand, maker: int, op_id: int) -> EdgeTable:
        key = (operand.tensor, op_id)
        known = self.tables.edges
        if key not in known:
            first = self._edge_of_first_block(operand, maker, op_id)
            known[key] = first or self._equal_cost_edge(operand, maker, op_id)
        return known[key]

    def _equal_cost_edge(self, operand: Operand, maker: int, op_id: int) -> EdgeTable:
        """Return the same edge between other ops, where there was one."""
        tensor = operand.tensor
        outputs = [x.tensor for x in self.graph.ops[maker].outputs]
        source = self.cost_representative(maker)
        target = self.cost_representative(op_id)
        key = (
            (source, outputs.index(tensor)),
            (target, self.graph.ops[op_id].inputs.index(operand)),
            tensor in self.graph_analysis.differentiable,
            self.graph_analysis.edge_shares.get((tensor, op_id)),
            self.graph_analysis.moved_together.get((tensor, op_id)),
        )
        known = self.tables.representative_edges
        if key not in known:
            output = self.graph.ops[maker].outputs[outputs.index(tensor)]
            begin = EdgeEnd(self.op(maker), output, source)
            known[key] = self.edge_pricer.table(begin, EdgeEnd(self.op(op_id), operand, target))
        return replace(known[key], tensor=tensor, source=maker, target=op_id)

    def _edge_of_first_block(self, operand: Operand, maker: int, op_id: int) -> EdgeTable | None:
        """Return the same edge in the first block, when both ends lie in one block."""
        representative = self.block_representative(op_id)
        source = self.block_representative(maker)
        if representative == op_id or op_id - representative != maker - source:
            return None
        same = self.graph.ops[representative].inputs[self.graph.ops[op_id].inputs.index(operand)]
        if self.graph.producers.get(same.tensor) != source:  # the ends lie in blocks of two runs
            return None
        return replace(self._edge(same, source, representative), tensor=operand.tensor, source=maker, target=op_id)


def mode_index(mode: Recompute) -> int:
    """Row of a recompute mode in the tables."""
    return MODES.index(mode)
