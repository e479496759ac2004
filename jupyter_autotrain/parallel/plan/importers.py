"""Plans of other systems as pins, so that they can be priced and completed here.

`MindSpore` takes a tuple of splits per input of an op, `((4, 1), (1, 2))`: a split of a tensor dim is a split of the
loop it runs along, and the mesh is the coarsest one in which every op's splits are products of whole axes.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Protocol

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.graph.graph import Loop, Op, OpGraph
from jupyter_autotrain.parallel.search import Pins
from jupyter_autotrain.parallel.search.request.request import mesh_shapes

MOST_AXES = 4


class PlanImporter(Protocol):
    """A plan from elsewhere."""

    def pins(self, traced: OpGraph, fused: OpGraph, cluster: ClusterSpec) -> Pins:
        """Return what it decides, for a model as traced and as searched (`fused`)."""
        ...


@dataclass(frozen=True, slots=True)
class MindSpore:
    """Strategies as MindSpore's `shard` takes them.

    Attributes:
        strategies: Op name (or glob pattern), as traced → for each input a tuple with the parts of each of its dims.
        stages: Pipeline stages.
    """

    strategies: Mapping[str, tuple[tuple[int, ...], ...]]
    stages: int = 1

    def pins(self, traced: OpGraph, fused: OpGraph, cluster: ClusterSpec) -> Pins:
        """Strategies as pins; ops that have none are searched.

        Raises:
            PlanError: Naming every strategy that contradicts itself, its op, another one, or the cluster.
        """
        collected = self._collected(traced, fused)
        mesh = collected.mesh(cluster.devices // self.stages)
        if mesh is None:
            raise PlanError(
                "; ".join(dict.fromkeys(collected.faults)) + ".",
                "Per input the parts of each dim: equal along one loop, dividing sizes and devices.",
                "Correct these strategies; ops without one are searched.",
            )
        wanted = {name: next(_ways(tuple(parts.items()), mesh)) for name, parts in collected.parts.items()}
        return Pins(mesh=mesh, ops=as_patterns(wanted), stages=self.stages)

    def _collected(self, traced: OpGraph, fused: OpGraph) -> _SplitsByOp:
        collected = _SplitsByOp()
        for pattern, splits in self.strategies.items():
            hit = [op for op in traced.ops if fnmatch.fnmatchcase(op.name, pattern)]
            if not hit:
                collected.faults.append(f"no op is named {pattern!r}")
            for op in hit:
                collected.add(fused, op, splits, pattern)
        return collected


@dataclass
class _SplitsByOp:
    """Splits collected by searched op: loop name → parts; and what is wrong with them."""

    parts: dict[str, dict[str, int]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def add(self, fused: OpGraph, op: Op, splits: tuple[tuple[int, ...], ...], called: str) -> None:
        """Take one op's strategy; faults name it as it was `called`."""
        holder, follows = _holder(fused, op)
        own = self.parts.setdefault(holder.name, {})
        for operand, dims in zip(op.inputs, splits, strict=False):
            if len(dims) != len(operand.loops):
                self.faults.append(f"{called!r} has an input of {len(operand.loops)} dims, its strategy {dims}")
                continue
            for loop, parts in zip(operand.loops, dims, strict=True):
                place = follows[loop] if loop is not None else None
                if place is None:
                    self.faults += [f"{called!r} cannot split a dim that the op needs whole"] * (parts > 1)
                    continue
                self._take(own, holder.loops[place], parts, called)

    def _take(self, own: dict[str, int], loop: Loop, parts: int, called: str) -> None:
        if own.setdefault(loop.name, parts) != parts:
            self.faults.append(f"{called!r} splits one loop in {own[loop.name]} and in {parts}")
        elif loop.size % parts:
            self.faults.append(f"{called!r} cannot cut {loop.size} ({loop.role}) into {parts} equal parts")
        elif parts > 1 and not loop.shardable:
            self.faults.append(f"{called!r} needs its {loop.role} dim whole")

    def mesh(self, devices: int) -> tuple[int, ...] | None:
        """Return the mesh with the fewest axes in which all splits are products of whole axes; None with a fault."""
        wanted = {tuple(parts.items()) for parts in self.parts.values()}
        used = sorted({prod(parts.values()) for parts in self.parts.values()})
        self.faults += [f"splits into {n} parts do not fit {devices} devices" for n in used if devices % n]
        if self.faults:
            return None
        for shape in mesh_shapes(devices, MOST_AXES):
            if all(next(_ways(parts, shape), None) is not None for parts in wanted):
                return shape
        self.faults.append(f"no mesh of {devices} devices with at most {MOST_AXES} axes has all these splits")
        return None


def _holder(fused: OpGraph, op: Op) -> tuple[Op, tuple[int | None, ...]]:
    """Return the searched op that holds a traced one, and which of its loops that one's loops follow."""
    for one in fused.ops:
        for member in one.members:
            if member.name == op.name:
                return one, member.loops
        if one.name == op.name:
            return one, tuple(range(len(op.loops)))
    raise PlanError(f"Op {op.name!r} is not in the searched graph.", "An op of the traced model.", "Trace it again.")


def _ways(parts: tuple[tuple[str, int], ...], shape: tuple[int, ...]) -> Iterator[tuple[str | None, ...]]:
    """Every way to give axes to loops such that each loop gets its parts; outer axes to earlier loops first."""
    wanted = {name: count for name, count in parts if count > 1}
    for way in product([*wanted, None], repeat=len(shape)):
        got = dict.fromkeys(wanted, 1)
        for size, name in zip(shape, way, strict=True):
            if name is not None:
                got[name] *= size
        if got == wanted:
            yield way


def as_patterns(wanted: Mapping[str, tuple[str | None, ...]]) -> dict[str, tuple[str | None, ...]]:
    """Pins of equal layers as one pattern each, where the patterns say the same for every op."""
    patterns: dict[str, tuple[str | None, ...]] = {}
    for name, way in wanted.items():
        patterns.setdefault(".".join("*" if part.isdigit() else part for part in name.split(".")), way)
    for name, way in wanted.items():
        found = next(p for p in patterns if fnmatch.fnmatchcase(name, p))
        if patterns[found] != way:
            return dict(wanted)
    return patterns
