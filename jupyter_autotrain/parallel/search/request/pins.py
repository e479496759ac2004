"""Checks what a user pinned against the graph, the cluster and itself, and turns it into a restriction."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.arrays import Ints
from jupyter_autotrain.parallel.cost.layout import NONE
from jupyter_autotrain.parallel.cost.model import Restriction
from jupyter_autotrain.parallel.graph.graph import Op, OpGraph, RepeatedBlocks
from jupyter_autotrain.parallel.search.request.space import Pins, microbatch_limit


def check_pins(pins: Pins, graph: OpGraph, cluster: ClusterSpec, blocks: int) -> None:
    """Name every contradiction that can be seen without searching.

    Raises:
        PlanError: With all of them.
    """
    faults = [*_outer(pins, graph, cluster, blocks), *_inner(pins, graph)]
    if faults:
        raise PlanError(
            "; ".join(faults) + ".",
            "Pins must agree with the model, the cluster and each other.",
            "Change or drop one of them; what is not pinned is searched.",
        )


def restriction_of(pins: Pins) -> Restriction | None:
    """Keeps the strategies that agree with the pinned ops."""
    if not pins.ops:
        return None

    def restrict(op: Op, table: Ints) -> Ints:
        wanted = pin_of(pins, op)
        if wanted is None:
            return table
        if len(wanted) != table.shape[1]:
            return table[:0]
        fits = np.ones(len(table), dtype=bool)
        for axis, loop_name in enumerate(wanted):
            fits &= np.isin(table[:, axis], _loops(op, loop_name))
        return table[fits]

    return restrict


def pin_of(pins: Pins, op: Op) -> tuple[str | None, ...] | None:
    """What is pinned for an op, by the first pattern that names it; else for one fused into it."""
    for names in ((op.name,), tuple(member.name for member in op.members)):
        for pattern, axes in pins.ops.items():
            if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                return axes
    return None


def _loops(op: Op, loop_name: str | None) -> list[int]:
    """Loops that a pin's word means: by name, else by role; none for None."""
    if loop_name is None:
        return [NONE]
    named = [i for i, loop in enumerate(op.loops) if loop.name == loop_name]
    return named or [i for i, loop in enumerate(op.loops) if loop.role == loop_name]


def _outer(pins: Pins, graph: OpGraph, cluster: ClusterSpec, blocks: int) -> list[str]:
    faults = []
    devices = cluster.devices
    stages = pins.stages or 1
    if pins.mesh and pins.stages and math.prod(pins.mesh) * stages != devices:
        size = math.prod(pins.mesh)
        faults.append(f"mesh {pins.mesh} x {stages} stages is {size * stages} devices, the cluster has {devices}")
    elif pins.mesh and devices % math.prod(pins.mesh):
        faults.append(
            f"mesh {pins.mesh} has {math.prod(pins.mesh)} devices, which do not divide the cluster's {devices}"
        )
    if pins.stages and (devices % stages or stages > max(1, blocks)):
        faults.append(f"{stages} stages do not fit {devices} devices and {blocks} blocks")
    if pins.microbatches and microbatch_limit(graph) % pins.microbatches:
        why = (
            f"the batch is not cut: {graph.unsplittable_reason}"
            if graph.unsplittable_reason
            else f"the batch of {microbatch_limit(graph)}"
        )
        faults.append(f"{pins.microbatches} microbatches do not divide {why}")
    return faults


def _inner(pins: Pins, graph: OpGraph) -> list[str]:
    faults = []
    names = list(chain.from_iterable(map(_names, graph.ops)))
    for pattern, axes in pins.ops.items():
        hit = [op for op in graph.ops if pin_of(Pins(ops={pattern: axes}), op) is not None]
        if not hit:
            near = closest_match(pattern, names, cutoff=0.0)
            faults.append(f"no op is named {pattern!r}" + (f" (nearest: {near!r})" if near else ""))
        if pins.mesh and len(axes) != sum(size > 1 for size in pins.mesh):
            faults.append(f"{pattern!r} names {len(axes)} axes, mesh {pins.mesh} has {len(pins.mesh)}")
        meant = [op for op in hit if pin_of(pins, op) == axes]  # an earlier pattern may name an op first
        faults += _first_faults(pattern, axes, meant, pins)
    return faults


def _first_faults(pattern: str, axes: tuple[str | None, ...], ops: Iterable[Op], pins: Pins) -> list[str]:
    """What is wrong with a pin for the first op that it does not suit."""
    for op in ops:
        faults = _splits(pattern, axes, op, pins)
        if faults:
            return [f"{fault} (op {op.name!r})" for fault in faults]
    return []


def _names(op: Op) -> Iterator[str]:
    """Its own name, and those of the ops fused into it."""
    yield op.name
    yield from (member.name for member in op.members)


def _splits(pattern: str, axes: tuple[str | None, ...], op: Op, pins: Pins) -> list[str]:
    faults = []
    splits = dict.fromkeys(axes, 1)
    for loop_name, size in zip(axes, pins.mesh or (1,) * len(axes), strict=False):
        splits[loop_name] *= size
    for loop_name, split in splits.items():
        loops = [op.loops[i] for i in _loops(op, loop_name) if i >= 0]
        if loop_name is not None and not any(loop.shardable for loop in loops):
            known = ", ".join(f"{loop.name} ({loop.role})" for loop in op.loops if loop.shardable)
            faults.append(f"{pattern!r} has no loop {loop_name!r} to split, only {known or 'none'}")
        elif loops and all(loop.size % split for loop in loops):
            faults.append(
                f"{pattern!r} along {loop_name!r} has size {loops[0].size}, which {split} devices do not divide"
            )
    return faults


def _block_pins(pins: Pins, block: Sequence[Op]) -> tuple[tuple[str | None, ...] | None, ...]:
    return tuple(pin_of(pins, op) for op in block)


def uniform_runs(graph: OpGraph, pins: Pins) -> OpGraph:
    """The graph with runs of equally pinned blocks only: blocks pinned otherwise stand alone."""
    if not pins.ops:
        return graph
    runs = []
    for run in graph.repeated_blocks:
        blocks = [graph.ops[run.start + k * run.length : run.start + (k + 1) * run.length] for k in range(run.count)]
        first = 0
        for _, group in groupby(_block_pins(pins, block) for block in blocks):
            count = len(list(group))
            runs.append(RepeatedBlocks(run.start + first * run.length, run.length, count, run.name))
            first += count
    return replace(graph, repeated_blocks=tuple(run for run in runs if run.count > 1))
