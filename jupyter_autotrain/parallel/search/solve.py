"""The one door to strategy search: `solve(graph, cluster, ...)` gives the best `Solution`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import InfeasibleError, PlanError
from jupyter_autotrain.parallel.cost.activations import facts_of
from jupyter_autotrain.parallel.cost.memory import Recompute, Zero
from jupyter_autotrain.parallel.cost.model import Settings
from jupyter_autotrain.parallel.graph.fold import fold
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.search.baselines import data_only, price_baselines
from jupyter_autotrain.parallel.search.exhaustive import exhaustive_outcome
from jupyter_autotrain.parallel.search.folding import chain_of
from jupyter_autotrain.parallel.search.pins import check_pins, restriction_of, uniform_runs
from jupyter_autotrain.parallel.search.pipeline import Outcome
from jupyter_autotrain.parallel.search.recursive import recursive
from jupyter_autotrain.parallel.search.solution import Alternative, Solution, cost_of, solution_of
from jupyter_autotrain.parallel.search.space import Candidate, Pins, Space, candidates
from jupyter_autotrain.parallel.search.whole import OutOfTime, Search, Task, alternatives

SHOWN = 8  # alternatives kept in a solution


class Mode(StrEnum):
    """How much is searched (MindSpore's names)."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    AUTO_PARALLEL = "auto_parallel"


class Method(StrEnum):
    """Which solver."""

    DYNAMIC_PROGRAMMING = "dynamic_programming"
    RECURSIVE_PROGRAMMING = "recursive_programming"
    EXHAUSTIVE = "exhaustive"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a plan and its search may use; None: the device's memory, and as long as it takes."""

    memory_bytes: float | None = None
    time_s: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked beside graph and cluster.

    Attributes:
        mode: How much is searched.
        search: Solver.
        limits: Memory and time.
        pins: What is decided already (`hybrid_parallel`).
        space: Where to search.
        settings: Constants of the cost model.
        baselines: Whether to weigh the well-known plans as well.
    """

    mode: Mode = Mode.AUTO_PARALLEL
    search: Method = Method.DYNAMIC_PROGRAMMING
    limits: Limits = field(default_factory=Limits)
    pins: Pins = field(default_factory=Pins)
    space: Space = field(default_factory=Space)
    settings: Settings = field(default_factory=Settings)
    baselines: bool = True


def solve(
    graph: OpGraph,
    cluster: str | JsonObject | ClusterSpec,
    question: Question | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Solution:
    """The best plan for a graph on a cluster.

    Args:
        graph: As traced or built; fused and folded here when it has no repeated blocks yet.
        cluster: The machine, in any form `ClusterSpec.parse` reads.
        question: What is asked; the whole space by dynamic programming unless given.
        clock: Monotonic seconds.

    Raises:
        InfeasibleError: When no split fits, with the least memory that would do.
        PlanError: For a cyclic graph, an unknown device, pins that contradict something.
    """
    asked, began = question or Question(), clock()
    machine = ClusterSpec.parse(cluster)
    check_order(graph)
    folded = uniform_runs(graph if graph.runs else fold(fuse(graph)), asked.pins)
    task, space, pins = _task(folded, machine, asked, clock)
    search = Search(task)
    try:
        weighed = price_baselines(task) if asked.baselines and asked.mode is Mode.AUTO_PARALLEL else {}
        for outcome, _ in weighed.values():
            if outcome and _inside(outcome, space, task):
                search.offer(outcome)
        blocks = task.chain.run.count if task.chain else 1
        _run(search, asked.search, list(candidates(folded, task.cluster, space, blocks, pins)))
    except OutOfTime as late:
        raise PlanError(
            f"No plan was found within {asked.limits.time_s} s.",
            "The first plan of this graph takes longer.",
            "Give the search more time, or use search='recursive_programming'.",
        ) from late
    if search.best is None:
        raise _infeasible(search, task)
    solution = solution_of(search.best, min(search.bound_s, search.best.step_s))
    return replace(
        solution,
        limit_bytes=max(task.limits(search.best.candidate)),
        search_s=clock() - began,
        candidates=tuple(Alternative(str(o.candidate), cost_of(o), True) for o in alternatives(search.seen, SHOWN)),
        baselines=_weighed(weighed),
        method=str(asked.search),
        complete=search.complete,
    )


def _run(search: Search, method: Method, found: list[Candidate]) -> None:
    if method is Method.RECURSIVE_PROGRAMMING:
        recursive(search, found)
    elif method is Method.EXHAUSTIVE:
        for candidate in found:
            outcome = exhaustive_outcome(search.task, candidate)
            if outcome:
                search.offer(outcome)
        search.bound_s = search.cutoff_s
    else:
        if search.task.chain and search.best is None:
            recursive(search, found)
            search.bound_s = inf
        search.run(found)


def _task(
    graph: OpGraph, cluster: ClusterSpec, asked: Question, clock: Callable[[], float]
) -> tuple[Task, Space, Pins]:
    machine = cluster.scaled(devices=1) if asked.mode is Mode.STAND_ALONE else cluster
    pins = asked.pins
    chain = chain_of(graph)
    blocks = chain.run.count if chain else 1
    check_pins(pins, graph, machine, blocks)
    space, restrict = pins.narrow(asked.space), restriction_of(pins)
    if asked.mode in {Mode.DATA_PARALLEL, Mode.STAND_ALONE}:
        only = (machine.devices,) if machine.devices > 1 else ()
        pins = replace(pins, mesh=pins.mesh or only)
        space = replace(space, stages=(1,), zero=(Zero.NOTHING,), modes=(Recompute.NONE,), microbatches=(1,))
        restrict = data_only
    deadline = clock() + asked.limits.time_s if asked.limits.time_s else inf

    def check() -> None:
        if clock() > deadline:
            raise OutOfTime

    settings = replace(asked.settings, options=space.options)
    limit = asked.limits.memory_bytes or inf
    task = Task(graph, chain, machine, settings, space.modes, limit, facts_of(graph), restrict, check)
    return task, space, pins


def check_order(graph: OpGraph) -> None:
    """Refuse graphs whose ops are not in topological order.

    Raises:
        PlanError: Naming the first op that reads what is made later.
    """
    for op in graph.ops:
        late = next((x.tensor for x in op.inputs if graph.producers.get(x.tensor, -1) >= op.id), None)
        if late is not None:
            raise PlanError(
                f"Op {op.name!r} reads {graph.tensors[late].name!r}, which is made by itself or a later op.",
                "The graph must have no cycle, and its ops must be in topological order.",
                "Trace the model again, or sort the ops.",
            )


def _inside(outcome: Outcome, space: Space, task: Task) -> bool:
    """Whether a baseline's plan belongs to the space searched, so that it may be the answer."""
    c = outcome.candidate
    options = {choice.option for stage in outcome.stages for choice in stage.choices.values()}
    modes = {choice.mode for stage in outcome.stages for choice in stage.choices.values()}
    return (
        (not space.stages or c.stages in space.stages)
        and (not space.microbatches or c.microbatches in space.microbatches)
        and options <= set(space.options)
        and modes <= {*task.modes, Recompute.NONE}
        and len(c.mesh.shape) <= space.max_axes
    )


def _infeasible(search: Search, task: Task) -> PlanError:
    least = search.least_bytes
    limit = min(task.limit_bytes, task.cluster.device.memory_bytes)
    if least == inf:
        return PlanError(
            "No plan agrees with what is asked: no mesh, number of microbatches and pins go together.",
            f"The cluster has {task.cluster.devices} devices.",
            "Drop a pin, or change the batch so that something divides it.",
        )
    return InfeasibleError(
        f"No split of the model fits {limit / 1e9:.2f} GB per device on {task.cluster}.",
        f"The least memory that would do is {least / 1e9:.2f} GB per device.",
        "Use devices with more memory, more devices, a smaller batch, or offload the optimizer to the host.",
        int(-(-least // 1)),
    )


def _weighed(found: Mapping[str, tuple[Outcome | None, str]]) -> dict[str, Alternative]:
    return {
        name: Alternative(str(o.candidate) if o else name, cost_of(o) if o else None, o is not None, reason)
        for name, (o, reason) in found.items()
    }
