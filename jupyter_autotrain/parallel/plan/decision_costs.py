"""A decision with the cost models of its stages: what it costs, op by op, and what it sends is computed from this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.activations import GraphAnalysis, analyse_graph
from jupyter_autotrain.parallel.cost.layout import Placements
from jupyter_autotrain.parallel.cost.model import CostModel, Settings
from jupyter_autotrain.parallel.decision import Decision, OpDecision
from jupyter_autotrain.parallel.graph.graph import Op, Operand, OpGraph, RepeatedBlocks
from jupyter_autotrain.parallel.search import SearchRequest

Block: TypeAlias = tuple[int, ...]  # ids of its ops


@dataclass(frozen=True, slots=True)
class FoldedOp:
    """Ops of equal form and equal decisions; the first stands for all.

    Attributes:
        op: Id of the first op.
        ops: Ids of all of them, rising.
        group: Number of the group of blocks it belongs to; -1 outside repeated blocks.
    """

    op: int
    ops: tuple[int, ...]
    group: int


@dataclass(frozen=True, slots=True)
class FoldedBlocks:
    """Consecutive blocks with equal decisions."""

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class FoldedEdge:
    """A tensor that ops of one node make and ops of another read.

    Attributes:
        source: Number of the making node.
        target: Number of the reading node.
        operand: How the first reader uses the tensor.
        readers: Ids of all readers.
        repeats: Whether it leads from one block to the next of the same group.
    """

    source: int
    target: int
    operand: Operand
    readers: tuple[int, ...]
    repeats: bool


@dataclass(frozen=True, eq=False)
class FoldedGraph:
    """A graph under a decision, with equal blocks of equal decisions once.

    Attributes:
        graph: The graph.
        nodes: In the order of their first ops.
        groups: Groups of more than one block, in order.
        node_of: Op id → number of its node.
        edges: In the order of their readers; a tensor used twice alike is one edge.
    """

    graph: OpGraph
    nodes: tuple[FoldedOp, ...]
    groups: tuple[FoldedBlocks, ...]
    node_of: Mapping[int, int]
    edges: tuple[FoldedEdge, ...]

    @classmethod
    def of(cls, graph: OpGraph, decision: Decision) -> FoldedGraph:
        """Fold a graph; linear in it."""
        nodes: list[FoldedOp] = []
        groups: list[FoldedBlocks] = []
        for blocks in _pieces(graph, decision):
            group = len(groups) if len(blocks) > 1 else -1
            nodes += [FoldedOp(column[0], column, group) for column in zip(*blocks, strict=True)]
            if group >= 0:
                groups.append(FoldedBlocks(_label(graph, blocks[0]), len(blocks)))
        node_of: dict[int, int] = {}
        for number, node in enumerate(nodes):
            node_of |= dict.fromkeys(node.ops, number)
        return cls(graph, tuple(nodes), tuple(groups), node_of, tuple(_edges(graph, nodes, node_of)))

    def first_op(self, node: FoldedOp) -> Op:
        """Return the op that stands for a node."""
        return self.graph.ops[node.op]


def _pieces(graph: OpGraph, decision: Decision) -> Iterator[tuple[Block, ...]]:
    """Yield pieces of the graph; each is some blocks with equal decisions."""

    def decided(block: Block) -> list[object]:
        """Return what is decided for a block, whatever its stage; blocks of equal form have equal placements."""
        chosen = (decision.ops[graph.ops[i].name] for i in block)
        return [(one.loops, one.states, one.recompute) for one in chosen]

    at = 0
    for run in graph.repeated_blocks:
        yield from (((i,),) for i in range(at, run.start))
        for _, blocks in groupby(_blocks(run), key=decided):
            yield tuple(blocks)
        at = run.start + run.length * run.count
    yield from (((i,),) for i in range(at, len(graph.ops)))


def _edges(graph: OpGraph, nodes: Sequence[FoldedOp], node_of: Mapping[int, int]) -> Iterator[FoldedEdge]:
    order: dict[tuple[int, int, int, bool], Operand] = {}
    found: dict[tuple[int, int, int, bool], list[int]] = {}
    for op in graph.ops:
        for place, operand in enumerate(op.inputs):
            maker = graph.producers.get(operand.tensor)
            if maker is None or operand in op.inputs[:place]:
                continue
            source = node_of[maker]
            target = node_of[op.id]
            key = (source, target, place, _crosses(nodes[source], nodes[target], maker, op.id))
            order.setdefault(key, operand)
            found.setdefault(key, []).append(op.id)
    for key, readers in found.items():
        source, target, _, repeats = key
        yield FoldedEdge(source, target, order[key], tuple(readers), repeats)


def _crosses(source: FoldedOp, target: FoldedOp, maker: int, reader: int) -> bool:
    """Return whether both are in one group but in different blocks."""
    if source.group < 0 or source.group != target.group:
        return False
    return source.ops.index(maker) != target.ops.index(reader)


def _label(graph: OpGraph, block: Block) -> str:
    """Return the run's name without the number of its first block."""
    run = next(r for r in graph.repeated_blocks if r.start <= block[0] < r.start + r.length * r.count)
    return run.name.rstrip("0123456789.") or graph.ops[block[0]].name


def _blocks(run: RepeatedBlocks) -> Iterator[Block]:
    for first in range(run.start, run.start + run.length * run.count, run.length):
        yield tuple(range(first, first + run.length))


@dataclass(frozen=True, eq=False)
class DecisionCosts:
    """A decision with what it is for and what it costs.

    Attributes:
        graph: The graph.
        cluster: The devices.
        decision: The decision.
        settings: Constants that it was searched with.
        analysis: Facts of the graph.
        models: Cost models, one per stage; stages on equal devices share one.
        folded: The graph with equal blocks of equal decisions once.
    """

    graph: OpGraph
    cluster: ClusterSpec
    decision: Decision
    settings: Settings
    analysis: GraphAnalysis
    models: tuple[CostModel, ...]
    folded: FoldedGraph

    @classmethod
    def of(cls, graph: OpGraph, cluster: ClusterSpec, decision: Decision, request: SearchRequest) -> DecisionCosts:
        """Return a decision under the constants of a request, with the ways to keep parameters that were open to it."""
        kept = (*request.space.state_shardings, *(op.states for op in decision.ops.values()))
        settings = replace(request.settings, state_shardings=tuple(dict.fromkeys(kept)))
        analysis = analyse_graph(graph)
        mesh = decision.mesh
        models: dict[Device, CostModel] = {}
        by_stage = []
        for stage in range(len(decision.stages)):
            device = cluster.slowest(stage * mesh.devices, (stage + 1) * mesh.devices)
            if device not in models:
                models[device] = CostModel(graph, cluster, mesh, decision.microbatches, settings, device, analysis)
            by_stage.append(models[device])
        return cls(graph, cluster, decision, settings, analysis, tuple(by_stage), FoldedGraph.of(graph, decision))

    def op_decision(self, op: Op) -> OpDecision:
        """Return what is decided for an op."""
        return self.decision.ops[op.name]

    def input_placements(self, op: Op, operand: Operand) -> Placements:
        """Return how an op reads one of its inputs."""
        return self.op_decision(op).inputs[op.inputs.index(operand)]

    def output_placements(self, op: Op, operand: Operand) -> Placements:
        """Return how an op leaves one of its outputs."""
        return self.op_decision(op).outputs[op.outputs.index(operand)]

    def input_gradient_placements(self, op: Op, operand: Operand) -> Placements:
        """Return how an op's backward pass leaves the gradient of one of its inputs."""
        return self.op_decision(op).input_gradients[op.inputs.index(operand)]

    def row(self, op: Op) -> int:
        """Row of the op's decision in its cost tables."""
        return self.models[0].row_of(op.id, self.op_decision(op).loops)

    def state_sharding_row(self, op: Op) -> int:
        """Row of the op's way to keep its parameters in its state tables."""
        return self.settings.state_shardings.index(self.op_decision(op).states)
