"""The graph for display: repeated blocks with equal decisions once, with their count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

from jupyter_autotrain.parallel.decision import Decision
from jupyter_autotrain.parallel.graph.graph import Op, Operand, OpGraph, RepeatedBlocks

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


@dataclass(eq=False)
class FoldedGraph:
    """Nodes, groups and edges of a graph under a decision."""

    graph: OpGraph
    decision: Decision

    @cached_property
    def nodes(self) -> tuple[FoldedOp, ...]:
        """In the order of their first ops."""
        found = []
        for number, blocks in enumerate(self._pieces):
            group = self._numbers[number]
            found += [FoldedOp(column[0], column, group) for column in zip(*blocks, strict=True)]
        return tuple(found)

    @cached_property
    def groups(self) -> tuple[FoldedBlocks, ...]:
        """Of more than one block, in order."""
        return tuple(FoldedBlocks(self._label(piece[0]), len(piece)) for piece in self._pieces if len(piece) > 1)

    @cached_property
    def node_of(self) -> dict[int, int]:
        """Op id → number of its node."""
        return {op: number for number, node in enumerate(self.nodes) for op in node.ops}

    @cached_property
    def edges(self) -> tuple[FoldedEdge, ...]:
        """In the order of their readers; a tensor used twice alike is one edge."""
        graph = self.graph
        order: dict[tuple[int, int, int, bool], Operand] = {}
        found: dict[tuple[int, int, int, bool], list[int]] = {}
        for op in graph.ops:
            for place, operand in enumerate(op.inputs):
                maker = graph.producers.get(operand.tensor)
                if maker is None or operand in op.inputs[:place]:
                    continue
                source = self.node_of[maker]
                target = self.node_of[op.id]
                key = (source, target, place, self._crosses(maker, op.id))
                order.setdefault(key, operand)
                found.setdefault(key, []).append(op.id)
        return tuple(FoldedEdge(k[0], k[1], order[k], tuple(readers), k[3]) for k, readers in found.items())

    def first_op(self, node: FoldedOp) -> Op:
        """The op that stands for a node."""
        return self.graph.ops[node.op]

    def _crosses(self, maker: int, reader: int) -> bool:
        """Whether both are in one group but in different blocks."""
        source = self.nodes[self.node_of[maker]]
        target = self.nodes[self.node_of[reader]]
        if source.group < 0 or source.group != target.group:
            return False
        return source.ops.index(maker) != target.ops.index(reader)

    @cached_property
    def _pieces(self) -> tuple[tuple[Block, ...], ...]:
        """Pieces of the graph; each is some blocks with equal decisions."""
        graph = self.graph
        at = 0
        found: list[tuple[Block, ...]] = []
        for run in graph.repeated_blocks:
            found += [((i,),) for i in range(at, run.start)]
            found += [tuple(blocks) for _, blocks in groupby(_blocks(run), key=self._decisions)]
            at = run.start + run.length * run.count
        return (*found, *(((i,),) for i in range(at, len(graph.ops))))

    @cached_property
    def _numbers(self) -> tuple[int, ...]:
        """Piece → number of its group, or -1."""
        count = 0
        found = []
        for piece in self._pieces:
            found.append(count if len(piece) > 1 else -1)
            count += len(piece) > 1
        return tuple(found)

    def _decisions(self, block: Block) -> tuple[object, ...]:
        """What is decided for a block, whatever its stage; blocks of equal form have equal placements."""
        chosen = (self.decision.ops[self.graph.ops[i].name] for i in block)
        return tuple((one.loops, one.states, one.recompute) for one in chosen)

    def _label(self, block: Block) -> str:
        """The run's name without the number of its first block."""
        run = next(r for r in self.graph.repeated_blocks if r.start <= block[0] < r.start + r.length * r.count)
        return run.name.rstrip("0123456789.") or self.graph.ops[block[0]].name


def _blocks(run: RepeatedBlocks) -> Iterator[Block]:
    for first in range(run.start, run.start + run.length * run.count, run.length):
        yield tuple(range(first, first + run.length))
