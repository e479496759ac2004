"""Checks what a user pinned against the graph, the cluster and itself, and turns it into a restriction."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.arrays import Ints
from jupyter_autotrain.parallel.cost.layout import NONE
from jupyter_autotrain.parallel.cost.model import Restriction
from jupyter_autotrain.parallel.graph.graph import Loop, Op, OpGraph, RepeatedBlocks
from jupyter_autotrain.parallel.search.request.request import Pins, microbatch_limit


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
    """Return a restriction that keeps the strategies that agree with the pinned ops."""
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
    """Return what is pinned for an op, by the first pattern that names it; else for one fused into it."""
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
    faults = _mesh_faults(pins, cluster.devices)
    stages = pins.stages or 1
    if cluster.devices % stages or stages > max(1, blocks):
        faults.append(f"{stages} stages do not fit {cluster.devices} devices and {blocks} blocks")
    if pins.microbatches and microbatch_limit(graph) % pins.microbatches:
        why = f"the batch of {microbatch_limit(graph)}"
        if graph.unsplittable_reason:
            why = f"the batch is not cut: {graph.unsplittable_reason}"
        faults.append(f"{pins.microbatches} microbatches do not divide {why}")
    return faults


def _mesh_faults(pins: Pins, devices: int) -> list[str]:
    if not pins.mesh:
        return []
    size = math.prod(pins.mesh)
    if pins.stages and size * pins.stages != devices:
        total = size * pins.stages
        return [f"mesh {pins.mesh} x {pins.stages} stages is {total} devices, the cluster has {devices}"]
    if devices % size:
        return [f"mesh {pins.mesh} has {size} devices, which do not divide the cluster's {devices}"]
    return []


def _inner(pins: Pins, graph: OpGraph) -> list[str]:
    faults = []
    names = list(chain.from_iterable(map(_names, graph.ops)))
    for pattern, axes in pins.ops.items():
        hit = [op for op in graph.ops if pin_of(Pins(ops={pattern: axes}), op) is not None]
        if not hit:
            near = closest_match(pattern, names, cutoff=0.0)
            faults.append(f"no op is named {pattern!r}" + (f" (nearest: {near!r})" if near else ""))
        if pins.mesh and len(axes) != len(pins.mesh) - pins.mesh.count(1):
            faults.append(f"{pattern!r} names {len(axes)} axes, mesh {pins.mesh} has {len(pins.mesh)}")
        meant = [op for op in hit if pin_of(pins, op) == axes]  # an earlier pattern may name an op first
        faults += _first_faults(pattern, axes, meant, pins)
    return faults


def _first_faults(pattern: str, axes: tuple[str | None, ...], ops: Iterable[Op], pins: Pins) -> list[str]:
    """Return what is wrong with a pin for the first op that it does not suit."""
    for op in ops:
        faults = _splits(pattern, axes, op, pins)
        if faults:
            return [f"{fault} (op {op.name!r})" for fault in faults]
    return []


def _names(op: Op) -> Iterator[str]:
    """Its own name, and those of the ops fused into it."""
    yield op.name
    for member in op.members:
        yield member.name


def _splits(pattern: str, axes: tuple[str | None, ...], op: Op, pins: Pins) -> list[str]:
    faults = []
    splits = dict.fromkeys([None, *axes], 1)
    for loop_name, size in zip(axes, pins.mesh or (1,) * len(axes), strict=False):
        splits[loop_name] *= size
    del splits[None]
    for loop_name, split in splits.items():
        loops = [op.loops[i] for i in _loops(op, loop_name)]
        if not _shardable(loops):
            known = ", ".join(f"{loop.name} ({loop.role})" for loop in _shardable(op.loops))
            faults.append(f"{pattern!r} has no loop {loop_name!r} to split, only {known or 'none'}")
        elif all(loop.size % split for loop in loops):
            size = loops[0].size
            faults.append(f"{pattern!r} along {loop_name!r} has size {size}, which {split} devices do not divide")
    return faults


def _shardable(loops: Iterable[Loop]) -> list[Loop]:
    return [loop for loop in loops if loop.shardable]


def _block_pins(pins: Pins, block: Sequence[Op]) -> tuple[tuple[str | None, ...] | None, ...]:
    return tuple(pin_of(pins, op) for op in block)


def uniform_runs(graph: OpGraph, pins: Pins) -> OpGraph:
    """Return the graph with runs of equally pinned blocks only: blocks pinned otherwise stand alone."""
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
