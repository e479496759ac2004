"""One search from request to solution, whether it runs to its end or is stopped on the way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.cost.activations import analyse_graph
from jupyter_autotrain.parallel.cost.compute_lower_bound import compute_lower_bound
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.cost.table_cache import TableCache
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.graph.prepare import PreparedGraph
from jupyter_autotrain.parallel.search.outer.baselines import BASELINES, price_baselines
from jupyter_autotrain.parallel.search.outer.branch_and_bound import BranchAndBound, Part
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.outer.executed import (
    executed_parts,
    first_executed,
    is_searched_so,
    runs,
    uniform_plans,
)
from jupyter_autotrain.parallel.search.outer.fallback_plan import data_only, find_fallback_plan
from jupyter_autotrain.parallel.search.outer.heuristic import heuristic_search
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.outer.uniform import UniformPlans
from jupyter_autotrain.parallel.search.request.pins import check_pins, restriction_of, uniform_runs
from jupyter_autotrain.parallel.search.request.request import (
    Candidate,
    Method,
    Mode,
    Pins,
    SearchRequest,
    StrategySpace,
    candidates,
)
from jupyter_autotrain.parallel.search.solution import Alternative, judged
from jupyter_autotrain.parallel.search.stage.chain import chain_of
from jupyter_autotrain.parallel.search.stage.outcome import Outcome
from jupyter_autotrain.parallel.search.stage.unrolled_solver import exhaustive_outcome

AT_ONCE_OPS = 2_000  # ops without layers from which a first plan comes before all else
HUGE_OPS = 20_000  # ops from which a search without a time limit gets one
HUGE_TIME_S = 60.0
NOT_EVALUATED = "the search was stopped before it was evaluated"


@dataclass
class SearchRun:
    """One search from request to solution."""

    request: SearchRequest
    search: BranchAndBound
    space: StrategySpace
    candidates: list[Candidate]
    baselines: dict[str, Alternative] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        graph: PreparedGraph,
        cluster: ClusterSpec,
        request: SearchRequest,
        progress: ProgressMonitor,
    ) -> SearchRun:
        """Enumerate the outer candidates; linear in the graph.

        Raises:
            PlanError: For a cyclic graph, and pins that contradict something.
        """
        check_order(graph)
        folded = uniform_runs(graph, request.pins)
        progress.deadline = progress.began + _time_s(folded, request)
        context, space, pins = _context(folded, cluster, request, progress)
        blocks = context.chain.run.count if context.chain else 1
        proof_s = inf if request.limits.proof_s is None else request.limits.proof_s
        search = BranchAndBound(context, clock=progress.clock, proof_s=proof_s)
        if is_searched_so(request):
            search.accepts = runs
        return cls(request, search, space, list(candidates(folded, context.cluster, space, blocks, pins)))

    def parts(self) -> list[Part]:
        """Return what is searched: plans that run, where the request is for one, else all."""
        if is_searched_so(self.request):
            return list(executed_parts(uniform_plans(self.request, self.search.context, self.space)))
        return [(self.search.context, self.candidates)]

    def uniform_plans(self) -> UniformPlans:
        """Return the uniform plans that may be the answer, whatever the time."""
        context = replace(self.search.context, progress=ProgressMonitor())
        return uniform_plans(self.request, context, self.space)

    def first_plans(self) -> None:
        """Incumbents of branch and bound: the fallback of huge graphs, baselines, the heuristic search.

        The other methods end here: the request's method is heuristic, or exhaustive.

        Raises:
            OutOfTime: The deadline has passed.
        """
        search = self.search
        context = self.search.context
        method = self.request.search
        is_huge = context.chain is None and len(context.graph.ops) > AT_ONCE_OPS
        if is_searched_so(self.request):
            first_executed(search, uniform_plans(self.request, context, self.space), at_once=is_huge)
            self._evaluate_baselines()
            return
        if is_huge and method is not Method.EXHAUSTIVE:
            find_fallback_plan(search, self.candidates)
        self._evaluate_baselines()
        if method is Method.EXHAUSTIVE:
            self._exhaust()
        elif method is Method.RECURSIVE_PROGRAMMING or (context.chain and search.best is None):
            heuristic_search(search, self.candidates, self.request.limits.effort)

    def _exhaust(self) -> None:
        search = self.search
        for candidate in self.candidates:
            (model,) = search.context.models(candidate)
            outcome = exhaustive_outcome(model, candidate, search.context.limits(candidate)[0])
            if outcome:
                search.update_incumbent(outcome)
        search.bound_s = search.cutoff_s

    def _evaluate_baselines(self) -> None:
        context = self.search.context
        if not self.request.baselines or self.request.mode is not Mode.AUTO_PARALLEL:
            return
        self.baselines |= {b.name: Alternative(b.name, None, False, NOT_EVALUATED) for b in BASELINES}
        for name, outcome, reason in price_baselines(UniformPlans(context, self.space)):
            self.baselines[name] = judged(outcome) if outcome else Alternative(name, None, False, reason)
            if outcome and _is_inside(outcome, self.space, context):
                self.search.update_incumbent(outcome)

    def stop(self) -> None:
        """Stop early: use the incumbent, or the fallback plan if there is none, or none that was searched.

        Raises:
            PlanError: When that does not fit.
        """
        search = self.search
        search.complete = False
        if search.best is None and is_searched_so(self.request):
            first_executed(search, self.uniform_plans(), at_once=True)
        baselines_only = search.bound_s == inf and search.context.chain is not None
        if search.best is None or baselines_only:
            find_fallback_plan(search, self.candidates)
        if search.best is None:
            raise PlanError(
                "The search was stopped before it found a plan that fits.",
                "The fallback plan needs more memory than a device has.",
                "Give the search more time, or the devices more memory.",
            )
        if search.bound_s == inf:
            search.bound_s = min(map(search.context.compute_bound_s, self.candidates), default=inf)


def _time_s(graph: OpGraph, request: SearchRequest) -> float:
    """Return how long the search may take; a graph above `HUGE_OPS` ops always has a limit."""
    if request.limits.time_s is not None:
        return request.limits.time_s
    return HUGE_TIME_S if len(graph.ops) > HUGE_OPS else inf


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


def _context(
    graph: OpGraph, cluster: ClusterSpec, request: SearchRequest, progress: ProgressMonitor
) -> tuple[SearchContext, StrategySpace, Pins]:
    machine = cluster.scaled(devices=1) if request.mode is Mode.STAND_ALONE else cluster
    pins = request.pins
    chain = chain_of(graph)
    blocks = chain.run.count if chain else 1
    check_pins(pins, graph, machine, blocks)
    space = request.space
    restrict = restriction_of(pins)
    if request.mode in {Mode.DATA_PARALLEL, Mode.STAND_ALONE}:
        only = (machine.devices,) if machine.devices > 1 else ()
        space = replace(space, stages=(1,), zero=(ZeroLevel.NONE,), modes=(Recompute.NONE,), microbatches=(1,))
        pins = replace(pins, mesh=pins.mesh or only, stages=1)
        restrict = data_only
    space = pins.narrow(space)
    settings = replace(request.settings, state_shardings=space.state_shardings)
    limit = request.limits.memory_bytes
    context = SearchContext(
        graph,
        chain,
        machine,
        settings,
        space.modes,
        limit,
        analyse_graph(graph),
        compute_lower_bound(graph, machine, settings.efficiency),
        TableCache(),
        restrict,
        progress,
    )
    return context, space, pins


def _is_inside(outcome: Outcome, space: StrategySpace, context: SearchContext) -> bool:
    """Return whether a baseline's plan belongs to the space searched, so that it may be the answer."""
    c = outcome.candidate
    choices = outcome.choices()
    return (
        c.stages in (space.stages or {c.stages})
        and c.microbatches in (space.microbatches or {c.microbatches})
        and {choice.state_sharding for choice in choices} <= set(space.state_shardings)
        and {choice.mode for choice in choices} <= {*context.modes, Recompute.NONE}
        and len(c.mesh.shape) <= space.max_axes
    )
