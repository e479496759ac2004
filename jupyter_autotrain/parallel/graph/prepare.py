"""Preparing a graph once for all searches: shared ops hoisted, repeated blocks found.

Takes out of the first layer what all layers read: T5 computes its position bias there, once for all layers. An op
that needs nothing but weights, inputs and constants can run at any earlier time. When ops of other numbered modules
read it, it moves before the first op of its own, which then has the form of the layers behind it (see `fold`). Linear
in the graph.

Finds repeated blocks: the layers of a deep model become one block and a count. Ops get a label by form (family,
loops, costs, operand shapes). A period p is plausible where labels repeat at distance p; the gaps between equal
labels name the few periods worth testing. A stretch in which every op equals the one p later, and is wired to the
same op one block earlier, to the same op outside, or (in the first block) to anything outside, is a run. Of all ways
to cut a stretch into blocks the one with the fewest tensors across a cut is taken.

Time O(n (log n + candidate periods)) for n ops; no recursion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NewType

import numpy as np

from jupyter_autotrain.parallel.arrays import Bools, Ints
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import Op, OpGraph, RepeatedBlocks, Tensor, TensorKind


def hoisted(graph: OpGraph) -> OpGraph:
    """Get the same ops, shared ones before the layer that makes them; blocks are to be found again when any moved."""
    shared = [op for op in graph.ops if _is_free(graph, op) and _is_shared(graph, op)]
    if not shared:
        return graph
    starts: dict[str, int] = {}
    for op in graph.ops:
        starts.setdefault(_layer(op), op.id)
    places = {op.id: starts[_layer(op)] for op in shared}
    order = sorted(graph.ops, key=lambda op: (places.get(op.id, op.id), op.id not in places, op.id))
    return replace(graph, ops=tuple(replace(op, id=i) for i, op in enumerate(order)), repeated_blocks=())


def _is_free(graph: OpGraph, op: Op) -> bool:
    return all(graph.tensors[x.tensor].kind is not TensorKind.ACTIVATION for x in op.inputs)


def _is_shared(graph: OpGraph, op: Op) -> bool:
    """Return whether it belongs to a numbered module, and ops of another one read it."""
    own = _layer(op)
    return bool(own) and any(_layer(graph.ops[reader]) not in {own, ""} for reader in graph.readers(op))


def _layer(op: Op) -> str:
    """Path of the outermost numbered module around an op; "" when there is none."""
    parts = op.name.split(".")
    return next((".".join(parts[: place + 1]) for place, part in enumerate(parts) if part.isdigit()), "")


CANDIDATE_PERIODS = 32
OUTSIDE = -1
"""In place of the id of the op that makes a tensor, where no op does."""
LEAST_SAVING = 4
"""A run with fewer ops after its first block is a coincidence (two ReLUs in a row), not a repeated block."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Ops [start, stop) that repeat with the period."""

    start: int
    stop: int
    period: int

    @property
    def rank(self) -> tuple[int, int, int]:
        """Long stretches first, then short periods."""
        return self.start - self.stop, self.period, self.start


def fold(graph: OpGraph) -> OpGraph:
    """Return the same graph with its repeated blocks in `repeated_blocks`, not overlapping, in order."""
    labels = _labels(graph)
    stretches = sorted((s for p in _periods(labels) for s in _stretches(labels, p)), key=lambda s: s.rank)
    free = np.ones(len(labels), dtype=bool)
    runs: list[RepeatedBlocks] = []
    for stretch in stretches:
        for piece in _pieces(free, stretch):
            for part in _wired(graph, piece):
                run = _cut(graph, part)
                if run.length * (run.count - 1) < LEAST_SAVING:
                    continue
                free[run.start : run.start + run.length * run.count] = False
                runs.append(run)
    return replace(graph, repeated_blocks=tuple(sorted(runs, key=lambda run: run.start)))


def _labels(graph: OpGraph) -> Ints:
    """One number per op, equal for ops of equal form."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(_form(graph, op), len(numbers)) for op in graph.ops], dtype=np.int64)


def _form(graph: OpGraph, op: Op) -> object:
    tensors = graph.tensors
    return (
        op.family,
        op.kind,
        tuple((loop.size, loop.shardable) for loop in op.loops),
        tuple(
            (o.loops, tensors[o.tensor].shape, tensors[o.tensor].dtype, _owned(tensors[o.tensor])) for o in op.inputs
        ),
        tuple((o.loops, tensors[o.tensor].shape, tensors[o.tensor].dtype) for o in op.outputs),
        # All readers of a tensor but the last add to its gradient: bytes by which equal layers may differ.
        (op.flops_forward, op.flops_backward, op.bytes_forward, op.bytes_backward > 0),
        (len(op.saved), sum(tensors[t].size_bytes for t in op.saved), op.saved_extra_bytes, op.unfused_extra_bytes),
    )


def _owned(tensor: Tensor) -> bool:
    """Return whether a tensor belongs to the model.

    An input of the model may stand where a later block has an activation.
    """
    return tensor.kind in (TensorKind.PARAMETER, TensorKind.BUFFER)


def _periods(labels: Ints) -> list[int]:
    """Distances between neighbouring equal labels that would explain the most ops."""
    if not len(labels):
        return []
    order = np.argsort(labels, kind="stable")
    same = labels[order[1:]] == labels[order[:-1]]
    gaps = Counter((order[1:] - order[:-1])[same].tolist())
    return sorted(gaps, key=lambda gap: -gap * gaps[gap])[:CANDIDATE_PERIODS]


def _stretches(labels: Ints, period: int) -> Iterator[_Stretch]:
    """Places where at least two blocks of that period follow each other."""
    equal = np.concatenate(([False], labels[:-period] == labels[period:], [False]))
    edges = np.flatnonzero(equal[1:] != equal[:-1])
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if stop - start >= period:
            yield _Stretch(start, stop + period, period)


def _pieces(free: Bools, stretch: _Stretch) -> list[_Stretch]:
    """Return what no earlier run has taken of a stretch, where it still holds two blocks."""
    window = np.concatenate(([False], free[stretch.start : stretch.stop], [False]))
    edges = (np.flatnonzero(window[1:] != window[:-1]) + stretch.start).tolist()
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [_Stretch(a, b, stretch.period) for a, b in pairs if b - a >= 2 * stretch.period]


def _wired(graph: OpGraph, stretch: _Stretch) -> list[_Stretch]:
    """Parts of a stretch in which the blocks are also connected alike."""
    start = stretch.start
    parts = []
    for i in range(stretch.start, stretch.stop - stretch.period):
        if not _alike(graph, i, stretch):
            parts.append(_Stretch(start, i + stretch.period, stretch.period))
            start = i + 1
    parts.append(_Stretch(start, stretch.stop, stretch.period))
    return [part for part in parts if part.stop - part.start >= 2 * part.period]


def _alike(graph: OpGraph, i: int, stretch: _Stretch) -> bool:
    """Return whether op i and the op one period later read corresponding tensors."""
    start = stretch.start
    period = stretch.period
    producers = graph.producers
    for here, there in zip(graph.ops[i].inputs, graph.ops[i + period].inputs, strict=True):
        if graph.tensors[here.tensor].kind is TensorKind.PARAMETER:
            if here.tensor == there.tensor:  # layers that share a weight are not repetitions: it is held once
                return False
            continue
        made = producers.get(here.tensor, OUTSIDE)
        later = producers.get(there.tensor, OUTSIDE)
        if later - made != period and (made >= start or (later != made and i >= start + period)):
            return False
    return True


def _cut(graph: OpGraph, part: _Stretch) -> RepeatedBlocks:
    """Get the cut into blocks with the fewest tensors between them; among those the most blocks, then the earliest."""
    crossing = _crossing(graph, part)
    count = {}
    phase = range(part.period)
    for offset in phase:
        count[offset] = (part.stop - part.start - offset) // part.period
    best = min(phase, key=lambda offset: (crossing[offset], -count[offset], offset))
    start = part.start + best
    return RepeatedBlocks(start, part.period, count[best], _common_name(graph, start, part.period))


def _crossing(graph: OpGraph, part: _Stretch) -> list[int]:
    """For each offset, how many tensors made inside the stretch cross a cut there."""
    period = part.period
    steps = [0] * (2 * period + 1)
    for op in graph.ops[part.start : part.start + 2 * period]:
        for out in op.outputs:
            last = max(graph.consumers.get(out.tensor, (op.id,)))
            if last > op.id:
                steps[op.id - part.start + 1] += 1
                steps[min(last - part.start, 2 * period - 1) + 1] -= 1
    alive = np.cumsum(steps).tolist()
    return [alive[period + offset] for offset in range(period)]


def _common_name(graph: OpGraph, start: int, length: int) -> str:
    """Return the longest module path that all ops of the first block share, up to where the second block's differs."""
    paths = [graph.ops[i].name.split(".") for i in range(start, start + length)]
    common = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    after = graph.ops[start + length].name.split(".")
    place = next((i for i, pair in enumerate(zip(common, after, strict=False)) if pair[0] != pair[1]), len(common))
    return ".".join(common[: place + 1])


PreparedGraph = NewType("PreparedGraph", OpGraph)


def prepare(graph: OpGraph) -> PreparedGraph:
    """Followers fused, shared ops hoisted, repeated blocks found; a graph of an earlier plan is in this form already.

    Linear in the graph.
    """
    is_prepared = any(op.members for op in graph.ops)
    return PreparedGraph(graph if is_prepared else fold(hoisted(fuse(graph))))
