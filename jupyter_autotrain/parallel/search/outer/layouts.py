"""Layouts of uniform plans: the degrees of parallelism, and the one strategy that they give each op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from jupyter_autotrain.parallel.arrays import Ints
from jupyter_autotrain.parallel.cost.layout import NONE
from jupyter_autotrain.parallel.cost.model import Restriction
from jupyter_autotrain.parallel.graph.graph import Family, LoopRole, Op, OpGraph
from jupyter_autotrain.parallel.graph.tensor_parallel import tensor_loops


class Split(StrEnum):
    """The split along the inner axis, beside that of samples along the outer one."""

    NONE = "none"
    HYBRID = "hybrid"
    TENSOR = "tensor"
    SEQUENCE = "tensor and sequence"
    EXPERT = "expert"
    CONTEXT = "context"


INNER = (Split.TENSOR, Split.SEQUENCE, Split.EXPERT, Split.CONTEXT)


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of a uniform plan: stages, the split of the inner axis, and the sizes of both axes."""

    stages: int
    split: Split
    data: int
    inner: int = 1

    @property
    def dimensions(self) -> int:
        """Kinds of parallelism beside data parallelism."""
        return (self.stages > 1) + (self.split in INNER)

    @property
    def sample_ranks(self) -> int:
        """Ranks of a stage that have samples of their own."""
        return self.data * self.inner if self.split in {Split.HYBRID, Split.EXPERT} else self.data


def open_splits(graph: OpGraph) -> tuple[Split, ...]:
    """Return the splits of an inner axis that a graph has loops for."""
    roles = {loop.role for op in graph.ops for loop in op.loops if loop.shardable}
    found = [Split.TENSOR]
    if LoopRole.SEQUENCE in roles:
        found += [Split.SEQUENCE, Split.CONTEXT]
    if LoopRole.EXPERT in roles:
        found.append(Split.EXPERT)
    return tuple(found)


def loop_of(op: Op, *roles: LoopRole) -> int:
    """Return the first loop of some role that may be split; `NONE` where there is none."""
    return next((i for i, loop in enumerate(op.loops) if loop.role in roles and loop.shardable), NONE)


def restriction_to(graph: OpGraph, layout: Layout) -> Restriction:
    """Return a restriction to the one strategy that a layout gives each op."""
    inner = _inner_loop(graph, layout.split)
    outer_axes = int(layout.data > 1)
    inner_axes = int(layout.inner > 1)

    def restrict(op: Op, table: Ints) -> Ints:
        batch = [loop_of(op, LoopRole.BATCH)] * outer_axes
        nothing = [NONE] * outer_axes
        along = [inner(op)] * inner_axes
        whole = [NONE] * inner_axes
        for way in (batch + along, batch + whole, nothing + along):
            rows: Ints = table[(table == np.array(way)).all(axis=1)]
            if len(rows):
                return rows
        return table[:1]

    return restrict


def _inner_loop(graph: OpGraph, split: Split) -> Callable[[Op], int]:
    """Return the choice of the loop that the inner axis splits."""
    if split in {Split.TENSOR, Split.SEQUENCE}:
        named = tensor_loops(graph, sequence_parallel=split is Split.SEQUENCE)
        return lambda op: next((i for i, loop in enumerate(op.loops) if loop.name == named[op.id][1]), NONE)
    if split is Split.CONTEXT:
        return lambda op: max(loop_of(op, LoopRole.SEQUENCE), loop_of(op, LoopRole.HEAD))
    if split is Split.EXPERT:
        return lambda op: loop_of(op, LoopRole.EXPERT if op.family is Family.MOE else LoopRole.BATCH)
    return lambda op: loop_of(op, LoopRole.BATCH)
