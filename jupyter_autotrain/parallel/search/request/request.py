"""The request of a search: mode, method, limits, pins, and the space of candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from itertools import accumulate
from operator import mul

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.parallel.cost.activations import MODES
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.cost.model import Settings
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.graph.graph import LoopRole, OpGraph

AXIS_NAMES = ("a", "b", "c", "d", "e", "f")
MOST_CHUNKS = 4  # beside 2; more chunks send more than their smaller bubble saves
MOST_MICROBATCH_CHOICES = 9


@dataclass(frozen=True, slots=True)
class Candidate:
    """The outer choices of a plan; the solvers choose everything else.

    Attributes:
        stages: Pipeline stages, each with a mesh of its own devices.
        mesh: Axes over the devices of one stage.
        microbatches: Parts of the batch.
        schedule: Order of microbatches.
        chunks: Chunks of layers per device (interleaved schedule).
    """

    stages: int
    mesh: MeshSpec
    microbatches: int = 1
    schedule: Schedule = Schedule.NONE
    chunks: int = 1

    @property
    def rounds(self) -> float:
        """Microbatch times that a step of even stages lasts: m + (p-1)/v."""
        return self.microbatches + (self.stages - 1) / self.chunks

    def refines(self, other: Candidate) -> bool:
        """Return whether this is the other with some axes of its mesh cut."""
        cuts, others = (set(accumulate(c.mesh.shape, mul)) for c in (self, other))
        return others < cuts and replace(self, mesh=other.mesh) == other

    def __str__(self) -> str:
        parts = [str(self.mesh)]
        if self.stages > 1:
            parts.append(f"{self.stages} stages, {self.schedule}" + (f" x{self.chunks}" if self.chunks > 1 else ""))
        if self.microbatches > 1:
            parts.append(f"{self.microbatches} microbatches")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class StrategySpace:
    """The space of a search.

    Attributes:
        max_axes: Most axes of a mesh.
        stages: Numbers of pipeline stages to try; empty: every divisor of the device count up to the blocks.
        microbatches: Numbers to try; empty: divisors of the batch.
        schedules: Pipeline schedules.
        modes: Recompute modes that each block may choose from.
        zero: Levels that each op may choose from.
        offload: Whether optimizer states, and embedding tables with them, may live on the host.
        all_devices: Whether a plan must use every device; else some may stay idle where that is faster.
    """

    max_axes: int = 3
    stages: tuple[int, ...] = ()
    microbatches: tuple[int, ...] = ()
    schedules: tuple[Schedule, ...] = (Schedule.ONE_F_ONE_B, Schedule.INTERLEAVED)
    modes: tuple[Recompute, ...] = MODES
    zero: tuple[ZeroLevel, ...] = tuple(ZeroLevel)
    offload: bool = False
    all_devices: bool = False

    @classmethod
    def placements(cls, max_axes: int = 3) -> StrategySpace:
        """Placements on all devices only: one stage, one microbatch, no recompute: what op-level planners search."""
        return cls(max_axes, stages=(1,), microbatches=(1,), modes=(Recompute.NONE,), all_devices=True)

    @property
    def state_shardings(self) -> tuple[StateSharding, ...]:
        """Ways to keep an op's parameters."""
        kept = tuple(map(StateSharding, self.zero))
        if not self.offload:
            return kept
        on_host = tuple(replace(state_sharding, offload=True) for state_sharding in kept)
        return *kept, *on_host, replace(on_host[0], host_table=True)


@dataclass(frozen=True, slots=True)
class Pins:
    """Decisions of the user; everything else is searched.

    Attributes:
        mesh: Shape of a stage's mesh, outermost axis first.
        ops: Op name or glob pattern → for each mesh axis the name of a loop, its role, or None for not split.
        stages: Pipeline stages.
        microbatches: Parts of the batch.
        schedule: Pipeline schedule.
        zero: Level for all parameters.
        recompute: Mode for all blocks.
    """

    mesh: tuple[int, ...] | None = None
    ops: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    stages: int | None = None
    microbatches: int | None = None
    schedule: Schedule | None = None
    zero: ZeroLevel | None = None
    recompute: Recompute | None = None

    def narrow(self, space: StrategySpace) -> StrategySpace:
        """Return the part of a space that agrees with the pins."""
        return replace(
            space,
            stages=(self.stages,) if self.stages else space.stages,
            microbatches=(self.microbatches,) if self.microbatches else space.microbatches,
            schedules=(self.schedule,) if self.schedule else space.schedules,
            zero=(self.zero,) if self.zero is not None else space.zero,
            modes=(self.recompute,) if self.recompute else space.modes,
        )


def divisors(number: int) -> list[int]:
    """All divisors, rising."""
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


@cache
def mesh_shapes(devices: int, max_axes: int) -> tuple[tuple[int, ...], ...]:
    """All ordered factorizations into at most `max_axes` factors above one; fewest axes first."""
    if devices == 1:
        return ((),)
    found: list[tuple[int, ...]] = [(devices,)]
    if max_axes > 1:
        found += [
            (first, *rest) for first in divisors(devices)[1:-1] for rest in mesh_shapes(devices // first, max_axes - 1)
        ]
    return tuple(sorted(found, key=lambda shape: (len(shape), shape)))


def mesh_of(shape: tuple[int, ...]) -> MeshSpec:
    """Return a mesh with plain axis names, one for each size above one."""
    sizes = tuple(size for size in shape if size > 1)
    return MeshSpec(AXIS_NAMES[: len(sizes)], sizes)


def microbatch_limit(graph: OpGraph) -> int:
    """Get what the number of microbatches must divide: 1 where a cut would change the mathematics (`OpGraph.uncut`)."""
    return 1 if graph.unsplittable_reason else batch_size(graph)


def batch_size(graph: OpGraph) -> int:
    """Get what ranks of data parallelism must divide: the common divisor of all batch loops (1 when there are none)."""
    return math.gcd(*(loop.size for op in graph.ops for loop in op.loops if loop.role is LoopRole.BATCH)) or 1


def candidates(
    graph: OpGraph, cluster: ClusterSpec, space: StrategySpace, blocks: int, pins: Pins
) -> Iterator[Candidate]:
    """Every outer choice."""
    counts = space.microbatches or tuple(microbatch_counts(microbatch_limit(graph)))
    for stages in stage_counts(cluster.devices, space, blocks):
        shapes = [pins.mesh] if pins.mesh else mesh_shapes(cluster.devices // stages, space.max_axes)
        for shape in shapes:
            if math.prod(shape) * stages == cluster.devices:
                yield from _pipelined(mesh_of(shape), stages, counts, space, blocks)


def stage_counts(devices: int, space: StrategySpace, blocks: int) -> list[int]:
    """Return the numbers of pipeline stages that are open on so many devices, each with a block at least."""
    most = max(1, blocks)
    return [count for count in space.stages or divisors(devices) if devices % count == 0 and count <= most]


def _pipelined(
    mesh: MeshSpec, stages: int, counts: tuple[int, ...], space: StrategySpace, blocks: int
) -> Iterator[Candidate]:
    for microbatches in counts:
        if stages == 1:
            yield Candidate(1, mesh, microbatches)
            continue
        for schedule in space.schedules:
            chunks = [1]
            if schedule is Schedule.INTERLEAVED:
                fits = microbatches % stages == 0
                chunks = [v for v in (2, MOST_CHUNKS) if blocks % (stages * v) == 0 and fits]
            yield from (Candidate(stages, mesh, microbatches, schedule, v) for v in chunks)


def microbatch_counts(batch: int) -> list[int]:
    """Divisors of the batch, thinned evenly when there are many."""
    found = divisors(batch)
    if len(found) <= MOST_MICROBATCH_CHOICES:
        return found
    step = (len(found) - 1) / (MOST_MICROBATCH_CHOICES - 1)
    return [found[round(i * step)] for i in range(MOST_MICROBATCH_CHOICES)]


class Mode(StrEnum):
    """The part of the space that is searched (MindSpore's names)."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    AUTO_PARALLEL = "auto_parallel"


class Method(StrEnum):
    """The solver."""

    DYNAMIC_PROGRAMMING = "dynamic_programming"
    RECURSIVE_PROGRAMMING = "recursive_programming"
    EXHAUSTIVE = "exhaustive"


PROOF_S = 7.0


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of a plan and of its search.

    Attributes:
        memory_bytes: Of a rank; None, or more than a device has: what the device offers (`Device.usable_bytes`).
        time_s: From the beginning; None: no limit (huge graphs: a minute). What is linear in the graph, up
            to a first plan, is always finished.
        proof_s: How long to go on with meshes of three axes and more, once all meshes of two are searched, and what
            refines the best of them; None: to the end. This rarely improves the plan, only the bound.
        effort: Of the heuristic search, on better plans where memory slows the first; 0: take that one.
    """

    memory_bytes: float | None = None
    time_s: float | None = None
    proof_s: float | None = PROOF_S
    effort: float = 1.0


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The request of a search, beside graph and cluster.

    Attributes:
        mode: How much is searched.
        search: Solver.
        limits: Memory and time.
        pins: What is decided already (`hybrid_parallel`).
        space: Where to search.
        settings: Constants of the cost model.
        baselines: Whether to cost the well-known plans as well.
        simplicity: The answer is the simplest plan whose step takes at most this share longer than that of the best; 0:
            the best.
        execute: Whether the answer has executed choices only, as `parallel.choices` has them, where such a plan fits.
    """

    mode: Mode = Mode.AUTO_PARALLEL
    search: Method = Method.DYNAMIC_PROGRAMMING
    limits: SearchLimits = field(default_factory=SearchLimits)
    pins: Pins = field(default_factory=Pins)
    space: StrategySpace = field(default_factory=StrategySpace)
    settings: Settings = field(default_factory=Settings)
    baselines: bool = True
    simplicity: float = 0.0
    execute: bool = False
