"""A graph as head, equal blocks, tail: the cost of a search then does not grow with depth (see `folding`)."""

from __future__ import annotations

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
        """What a reduction of the chain takes, in op tables to be filled: its own, and what goes with them."""
        return len(self.head) + self.run.length + len(self.tail) + WORK_BESIDE

    def end(self, index: int) -> tuple[int, ...]:
        """The ops at a block's end."""
        first = self.run.start + index * self.run.length
        return tuple(first + offset for offset in self.ends)


def chain_of(graph: OpGraph) -> Chain | None:
    """The graph as a chain around its heaviest run; None when it has no run of two blocks that fits the form.

    Nor when more than `MOST_JOINED` ops connect two blocks: such a repetition is accidental, and its table too large.
    """
    runs = [run for run in graph.repeated_blocks if run.count > 1]
    if not runs:
        return None
    run = max(runs, key=lambda r: sum(op.flops_forward for op in graph.ops[r.start : r.start + r.length]) * r.count)
    stop = run.start + run.length * run.count
    ends: set[int] = set()
    shared: set[int] = set()
    entry: set[int] = set()
    for op in graph.ops[run.start :]:
        for operand in op.inputs:
            maker = graph.producers.get(operand.tensor)
            if maker is None or maker >= stop:
                continue
            block = (op.id - run.start) // run.length if op.id < stop else run.count
            if maker < run.start:
                (shared if block > 0 else entry).add(maker)
            elif (maker - run.start) // run.length < block - 1:
                return None
            elif (maker - run.start) // run.length == block - 1:
                ends.add((maker - run.start) % run.length)
    if not ends or max(len(entry) + len(ends), len(shared) + 2 * len(ends)) > MOST_JOINED:
        return None
    head = tuple(range(run.start))
    tail = tuple(range(stop, len(graph.ops)))
    return Chain(run, head, tail, tuple(sorted(ends)), tuple(sorted(shared)))
