"""A graph as head, equal blocks, tail: the cost of a search then does not grow with depth (see `folding`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jupyter_autotrain.parallel.graph.graph import OpGraph, RepeatedBlocks

MOST_JOINED = 5  # ops that one table of a chain may join; known models have at most four
WORK_BESIDE = 11  # op tables in whose time the tables of a mesh are joined, as was measured


@dataclass(frozen=True)
class Chain:
    """A graph as head, equal blocks, tail.

    Attributes:
        run: The blocks (the heaviest run of the graph).
        head: Ops before the run.
        tail: Ops after it.
        ends: Offsets in a block of the ops that the next block (or the tail) reads.
        shared: Head ops that blocks after the first, or the tail, read.
    """

    run: RepeatedBlocks
    head: tuple[int, ...]
    tail: tuple[int, ...]
    ends: tuple[int, ...]
    shared: tuple[int, ...]

    def block(self, index: int) -> range:
        """Ops of a block."""
        first = self.run.start + index * self.run.length
        return range(first, first + self.run.length)

    @property
    def representative_ops(self) -> tuple[int, ...]:
        """Ops whose tables are needed: head, two blocks, tail."""
        return (*self.head, *self.block(0), *self.block(1), *self.tail)

    @property
    def work(self) -> int:
        """Op tables that a reduction of the chain fills: its own, and as many as go with them."""
        return len(self.head) + self.run.length + len(self.tail) + WORK_BESIDE

    def end(self, index: int) -> tuple[int, ...]:
        """Return the ops at a block's end."""
        first = self.run.start + index * self.run.length
        return tuple(first + offset for offset in self.ends)


def chain_of(graph: OpGraph) -> Chain | None:
    """Return the graph as a chain around its heaviest run; None when it has no run of two blocks that fits the form.

    Nor when more than `MOST_JOINED` ops connect two blocks: such a repetition is accidental, and its table too large.
    """
    run = _heaviest_run(graph)
    if run is None:
        return None
    stop = run.start + run.length * run.count
    ends: set[int] = set()
    shared: set[int] = set()
    entry: set[int] = set()
    for maker, reader in _reads_behind_head(graph, run):
        block = min((reader - run.start) // run.length, run.count)
        made_in = (maker - run.start) // run.length
        if maker < run.start:
            (shared if block > 0 else entry).add(maker)
        elif made_in < block - 1:
            return None
        elif made_in == block - 1:
            ends.add((maker - run.start) % run.length)
    if not ends or max(len(entry) + len(ends), len(shared) + 2 * len(ends)) > MOST_JOINED:
        return None
    head = tuple(range(run.start))
    tail = tuple(range(stop, len(graph.ops)))
    return Chain(run, head, tail, tuple(sorted(ends)), tuple(sorted(shared)))


def _heaviest_run(graph: OpGraph) -> RepeatedBlocks | None:
    def flops(run: RepeatedBlocks) -> float:
        return sum(op.flops_forward for op in graph.ops[run.start : run.start + run.length]) * run.count

    return max((run for run in graph.repeated_blocks if run.count > 1), key=flops, default=None)


def _reads_behind_head(graph: OpGraph, run: RepeatedBlocks) -> Iterator[tuple[int, int]]:
    """Yield maker and reader of each tensor of the head or the blocks that the blocks or the tail read."""
    stop = run.start + run.length * run.count
    for op in graph.ops[run.start :]:
        for operand in op.inputs:
            maker = graph.producers.get(operand.tensor)
            if maker is not None and maker < stop:
                yield maker, op.id
