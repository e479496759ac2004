"""Plans that leave devices idle: a search on each part of the cluster that may be faster than the whole.

Variables: the part C' of the cluster C (see `core.subset`), and the plan on all its devices.
Objective: minimise the step over all parts; of equally fast plans the one with all devices, or found first.
Constraints: as `branch_and_bound`, on the part.
Recurrence: best(C) = min over C' of best plan on all devices of C'. A part is pruned when the least that its devices
    compute (see `cost.compute_lower_bound.DeviceCountBound`) is no less than the best so far; of the others those are
    searched whose plan by the heuristic search is near enough. The gap is over the parts searched to the end.
Complexity: at most the time that the full-cluster search took, or `LEAST_TIME_S` if that is more.
Source: as `branch_and_bound`.
Oracle: tests/oracle/test_search_idle.py::test_one_equal_device_more_never_raises_the_step_time
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from operator import attrgetter, itemgetter

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.subset import SMALL, subsets
from jupyter_autotrain.parallel.cost.compute_lower_bound import DeviceCountBound, device_count_bound
from jupyter_autotrain.parallel.search.outer.branch_and_bound import BranchAndBound
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.outer.executed import (
    executed_parts,
    first_executed,
    is_searched_so,
    uniform_plans,
)
from jupyter_autotrain.parallel.search.outer.heuristic import heuristic_search
from jupyter_autotrain.parallel.search.outer.search_run import SearchRun
from jupyter_autotrain.parallel.search.request.request import (
    MOST_CHUNKS,
    Candidate,
    Method,
    Mode,
    SearchRequest,
    batch_size,
    candidates,
    microbatch_limit,
    stage_counts,
)

NEAR = 1.25  # how much slower a plan of the heuristic search may be for its part to be searched to the end
LEAST_TIME_S = 3.0  # for all parts together, unless it is the heuristic search


@dataclass
class DeviceSubsetSearch:
    """The search on parts of a cluster.

    Attributes:
        full_search: The search with all devices, as far as it came.
        request: Mode, solver, limits, pins and space.
        blocks: Repeated blocks.
        deadline: When to stop, by the search's clock.
        best: The search that holds the best plan so far.
        bound_s: No plan is faster, on any part searched to the end.
        least_bytes: Memory that would do where nothing fits.
    """

    full_search: BranchAndBound
    request: SearchRequest
    blocks: int
    deadline: float = inf
    best: BranchAndBound = field(init=False)
    bound_s: float = inf
    least_bytes: float = field(init=False)

    def __post_init__(self) -> None:
        self.best = self.full_search
        self.least_bytes = self.full_search.least_bytes

    @classmethod
    def of(cls, search_run: SearchRun, began: float) -> DeviceSubsetSearch:
        """Prepare the search that follows another.

        It takes at most as long as that did, or `LEAST_TIME_S` unless it is heuristic.
        """
        search = search_run.search
        request = search_run.request
        chain = search_run.search.context.chain
        now = search.clock()
        least_s = 0.0 if request.search is Method.RECURSIVE_PROGRAMMING else LEAST_TIME_S
        narrowed = replace(request, space=search_run.space)
        blocks = chain.run.count if chain else 1
        return cls(search, narrowed, blocks, now + max(least_s, now - began))

    def run(self) -> None:
        """Search all parts that may be faster, most promising first; none where all devices are to be used.

        Raises:
            OutOfTime: The time is spent.
        """
        if not self._is_open():
            return
        for least_s, part in self._promising()[: self._most_parts]:
            if least_s < self.best.cutoff_s and self.full_search.clock() <= self.deadline:
                self.full_search.context.progress.enter(f"{part.devices} of the devices")
                self.full_search.context.progress.check()
                self._search_subset(part)

    def _is_open(self) -> bool:
        """Return whether devices may stay idle; with effort < 1 only if a feasible plan exists."""
        request = self.request
        full_search = self.full_search
        searched = (
            request.mode in {Mode.AUTO_PARALLEL, Mode.HYBRID_PARALLEL} and request.search is not Method.EXHAUSTIVE
        )
        open_counts = searched and not request.space.all_devices and request.pins.mesh is None
        is_worth_it = full_search.best is not None or request.limits.effort >= 1 or is_searched_so(request)
        return open_counts and full_search.complete and is_worth_it

    @property
    def _most_parts(self) -> int | None:
        """Number of parts to search; with effort < 1 at most one, on few devices that do not divide the batch."""
        context = self.full_search.context
        if self.request.limits.effort >= 1:
            return None
        few = context.cluster.devices <= SMALL
        return 1 if few and batch_size(context.graph) % context.cluster.devices else 0

    def _promising(self) -> list[tuple[float, ClusterSpec]]:
        """Parts with the least that they take: of one kind first, then by that."""
        bound = self._device_count_bound()
        context = self.full_search.context
        ranked = []
        for part in subsets(context.cluster, batch_size(context.graph)):
            stages = stage_counts(part.devices, self.request.space, self.blocks)
            least_s = bound.least_s(part, stages, max(1, microbatch_limit(context.graph)), MOST_CHUNKS)
            ranked.append((len(part.kinds), least_s, part))
        ranked.sort(key=itemgetter(0, 1))
        return [(least_s, part) for _, least_s, part in ranked]

    def nearly_as_fast(self, most_s: float, devices: int) -> list[ClusterSpec]:
        """Return parts with fewer devices that may do a step in `most_s`, those with the fewest first."""
        if not self._is_open():
            return []
        found = [part for least_s, part in self._promising() if least_s <= most_s and part.devices < devices]
        return sorted(found, key=attrgetter("devices"))

    def _device_count_bound(self) -> DeviceCountBound:
        context = self.full_search.context
        run = context.chain.run if context.chain else None
        ops = range(run.start, run.start + run.length * run.count) if run else range(0)
        return device_count_bound(
            context.graph, context.cluster, context.settings.efficiency, ops, run.count if run else 0
        )

    def _search_subset(self, part: ClusterSpec) -> None:
        context, found = self._subset_context(part)
        if is_searched_so(self.request):
            self._search_to_end(context, found)
        elif found:
            self._search_by_steps(context, found)

    def _search_by_steps(self, context: SearchContext, found: list[Candidate]) -> None:
        """To the end only where the heuristic search finds a plan that is near enough."""
        heuristic = BranchAndBound(context, clock=self.full_search.clock)
        heuristic_search(heuristic, found, self.request.limits.effort)
        self.least_bytes = min(self.least_bytes, heuristic.least_bytes)
        if self.request.search is Method.RECURSIVE_PROGRAMMING:
            self._update_best(heuristic)
        elif heuristic.cutoff_s <= NEAR * self.best.cutoff_s:
            self._update_best(heuristic)
            self._search_to_end(context, found)

    def _search_to_end(self, context: SearchContext, found: list[Candidate]) -> None:
        """To the end, for what is faster than the best so far."""
        full = self.full_search
        search = BranchAndBound(
            context, best=self.best.best, clock=full.clock, proof_s=full.proof_s, accepts=full.accepts
        )
        if is_searched_so(self.request):
            uniform = uniform_plans(self.request, context, self.request.space)
            if self.request.search is Method.DYNAMIC_PROGRAMMING:
                search.run_parts(list(executed_parts(uniform)))
            else:
                first_executed(search, uniform)
            self.least_bytes = min(self.least_bytes, search.least_bytes)
        else:
            search.run(found)
        self.bound_s = min(self.bound_s, search.bound_s)
        if self.best.context is context:
            self.best = replace(self.best, bound_s=search.bound_s)  # the heuristic search has the same candidates
        self._update_best(search)

    def _update_best(self, search: BranchAndBound) -> None:
        """Keep a search with a faster plan; the best plan so far becomes one of its alternatives."""
        before = self.best.best
        if search.cutoff_s < self.best.cutoff_s:
            outcomes = [*search.outcomes, before] if before else search.outcomes
            self.best = replace(search, outcomes=outcomes)

    def _subset_context(self, part: ClusterSpec) -> tuple[SearchContext, list[Candidate]]:
        context = self.full_search.context.for_cluster(part)
        return context, list(candidates(context.graph, part, self.request.space, self.blocks, self.request.pins))


def idle_devices(full_cluster: ClusterSpec, used: ClusterSpec) -> Iterator[tuple[str, int]]:
    """Kinds of devices that are not used, with how many."""
    left: Counter[str] = Counter()
    for device, count in full_cluster.kinds:
        left[device.name] += count
    for device, count in used.kinds:
        left[device.name] -= count
    yield from ((name, count) for name, count in left.items() if count > 0)
