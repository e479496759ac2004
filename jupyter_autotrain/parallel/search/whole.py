"""The outer search: all candidates, best bound first, until nothing left can win.

Recurrence: best = min over candidates c of best(c) (see `pipeline`), with bound(c) <= best(c) cheap: first the pure
compute time spread over all devices with the bubble of c, then the free optimum of c's mesh for the whole batch, then
that of c's own tables. A candidate whose bound reaches the best plan so far is dropped; what is never opened when time
runs out keeps its bound, so the answer's gap is always true. Time: one block reduction per opened candidate, and the
stage problems of those whose memory binds.

Source: best-first branch and bound (Lawler and Wood 1966).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heapify, heappop, heapreplace
from math import inf

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.activations import Facts
from jupyter_autotrain.parallel.cost.floor import Floor, floor_of
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.cost.model import CostModel, Restriction, Settings
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.search.chain import Chain
from jupyter_autotrain.parallel.search.dual import Infeasible
from jupyter_autotrain.parallel.search.outcome import Outcome
from jupyter_autotrain.parallel.search.pipeline import Pipeline
from jupyter_autotrain.parallel.search.plain import plain_outcome
from jupyter_autotrain.parallel.search.space import Candidate


class OutOfTime(Exception):  # noqa: N818 - a signal inside the search
    """The time budget is spent."""


@dataclass(frozen=True)
class Task:
    """What is searched: a graph on a cluster under limits.

    Attributes:
        graph: The model.
        chain: Its repeated blocks, when it has any.
        cluster: The machine.
        settings: Constants and open options.
        modes: Recompute modes.
        limit_bytes: Memory per rank; a device's own memory limits as well.
        facts: Of the graph.
        restrict: Pins.
        check: Raises `OutOfTime` when the budget is spent.
    """

    graph: OpGraph
    chain: Chain | None
    cluster: ClusterSpec
    settings: Settings
    modes: tuple[Recompute, ...]
    limit_bytes: float
    facts: Facts
    restrict: Restriction | None = None
    check: Callable[[], None] = lambda: None
    _models: dict[tuple[MeshSpec, int, Device], CostModel] = field(default_factory=dict, repr=False)

    def devices(self, candidate: Candidate) -> list[Device]:
        """The device that each stage must suit."""
        size = candidate.mesh.devices
        return [self.cluster.slowest(i * size, (i + 1) * size) for i in range(candidate.stages)]

    def limits(self, candidate: Candidate) -> list[float]:
        """Bytes per rank of each stage."""
        return [min(self.limit_bytes, device.memory_bytes) for device in self.devices(candidate)]

    def models(self, candidate: Candidate) -> list[CostModel]:
        """One cost model per stage; equal devices share one, and so do candidates that differ in schedule only."""
        made = self._models
        keys = [(candidate.mesh, candidate.microbatches, device) for device in self.devices(candidate)]
        for key in keys:
            if key not in made:
                made[key] = CostModel(
                    self.graph,
                    self.cluster,
                    candidate.mesh,
                    candidate.microbatches,
                    self.settings,
                    key[2],
                    self.facts,
                    self.restrict,
                )
        return [made[key] for key in keys]

    def compute_bound_s(self, candidate: Candidate) -> float:
        """Seconds of the kernels alone, spread evenly over all devices of the fastest kind, with the bubble."""
        micro_s = self.floor.micro_s(candidate.mesh.devices * candidate.microbatches)
        return micro_s / candidate.stages * candidate.rounds

    def mesh_bound_s(self, candidate: Candidate) -> float:
        """The free optimum without changes of layout if the batch were not cut, stretched by the bubble.

        Cutting it never helps: what is done once per step does not shrink, kernels and messages get no faster per byte,
        and whatever splits a microbatch splits the batch. So all microbatches of a mesh share one set of tables.
        """
        if self.chain is None:
            return 0.0
        models = self.models(replace(candidate, microbatches=1))
        return Pipeline(models, self.chain, candidate, self.cluster, self.modes).split_bound_s

    @cached_property
    def floor(self) -> Floor:
        """The least that any plan computes."""
        return floor_of(self.graph, self.cluster, self.settings.efficiency)


@dataclass
class Search:
    """The state of a running search."""

    task: Task
    best: Outcome | None = None
    least_bytes: float = inf
    bound_s: float = inf
    seen: list[Outcome] = field(default_factory=list)
    complete: bool = True

    @property
    def cutoff_s(self) -> float:
        """Seconds to beat."""
        return self.best.step_s if self.best else inf

    def offer(self, outcome: Outcome) -> None:
        """Take a plan that fits."""
        self.seen.append(outcome)
        if outcome.step_s < self.cutoff_s:
            self.best = outcome

    def run(self, candidates: Iterable[Candidate]) -> None:
        """Open candidates until none can win; what is never opened keeps its bound, also when this is interrupted.

        Raises:
            OutOfTime: The time is spent.
        """
        queue = [(self.task.compute_bound_s(c), i, False, c) for i, c in enumerate(candidates)]
        heapify(queue)
        try:
            while queue and queue[0][0] < self.cutoff_s:
                self.task.check()
                bound_s, index, is_refined, candidate = queue[0]
                refined_s = bound_s if is_refined else self.task.mesh_bound_s(candidate)
                if refined_s > bound_s:
                    heapreplace(queue, (refined_s, index, True, candidate))
                else:
                    self.open(candidate)
                    heappop(queue)
        finally:
            if queue:
                self.bound_s = min(self.bound_s, queue[0][0])

    def open(self, candidate: Candidate) -> None:
        """Solve one candidate."""
        outcome, bound_s, least = solve_candidate(self.task, candidate, self.cutoff_s)
        self.bound_s = min(self.bound_s, bound_s)
        self.least_bytes = min(self.least_bytes, least)
        if outcome:
            self.offer(outcome)


def solve_candidate(task: Task, candidate: Candidate, cutoff_s: float = inf) -> tuple[Outcome | None, float, float]:
    """(outcome when one fits and may win, bound, least bytes when nothing fits)."""
    models = task.models(candidate)
    if task.restrict and any(not len(models[0].table_rows(op.id)) for op in task.graph.ops):
        return None, inf, inf
    if task.chain is None:
        return plain_outcome(models[0], candidate, task.limits(candidate)[0], task.check)
    pipeline = Pipeline(models, task.chain, candidate, task.cluster, task.modes)
    limits = task.limits(candidate)
    if pipeline.split_bound_s >= cutoff_s:
        return None, pipeline.split_bound_s, inf
    bound_s = pipeline.bound_s
    try:
        if bound_s < cutoff_s:
            bound_s = pipeline.staged_bound_s
        if bound_s < cutoff_s and candidate.stages > 1:
            bound_s = pipeline.bound_within_s(sum(limits))
        if bound_s >= cutoff_s:
            return None, bound_s, inf
        outcome = pipeline.best(limits, cutoff_s)
    except Infeasible as full:
        proved = candidate.stages == 1 or full.least_bytes < inf
        return None, inf if proved else bound_s, full.least_bytes
    return outcome, max(bound_s, outcome.bound_s), inf


def alternatives(outcomes: Sequence[Outcome], count: int) -> Iterator[Outcome]:
    """The fastest outcomes, one per set of outer choices."""
    seen: set[Candidate] = set()
    for outcome in sorted(outcomes, key=lambda o: o.step_s):
        if outcome.candidate not in seen and len(seen) < count:
            seen.add(outcome.candidate)
            yield outcome
