"""One search from request to solution, whether it runs to its end or is stopped on the way."""

from __future__ import annotations

from collections.abc import Callable
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
from jupyter_autotrain.parallel.search.outer.baselines import all_baselines, data_only, price_baselines
from jupyter_autotrain.parallel.search.outer.branch_and_bound import BranchAndBound, alternatives
from jupyter_autotrain.parallel.search.outer.context import OutOfTime, SearchContext
from jupyter_autotrain.parallel.search.outer.fallback_plan import find_fallback_plan
from jupyter_autotrain.parallel.search.outer.heuristic import heuristic_search
from jupyter_autotrain.parallel.search.request.pins import check_pins, restriction_of, uniform_runs
from jupyter_autotrain.parallel.search.request.request import Method, Mode, SearchRequest
from jupyter_autotrain.parallel.search.request.space import Candidate, Pins, StrategySpace, candidates
from jupyter_autotrain.parallel.search.solution import Alternative, Solution, cost_of, solution_of
from jupyter_autotrain.parallel.search.stage.chain import chain_of
from jupyter_autotrain.parallel.search.stage.outcome import Outcome
from jupyter_autotrain.parallel.search.stage.unrolled_solver import exhaustive_outcome

SHOWN = 8  # alternatives kept in a solution
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
        clock: Callable[[], float],
        began: float,
    ) -> SearchRun:
        """Enumerate the outer candidates; linear in the graph.

        Raises:
            PlanError: For a cyclic graph, and pins that contradict something.
        """
        check_order(graph)
        folded = uniform_runs(graph, request.pins)
        context, space, pins = _context(folded, cluster, request, _check(folded, request, clock, began))
        blocks = context.chain.run.count if context.chain else 1
        proof_s = inf if request.limits.proof_s is None else request.limits.proof_s
        search = BranchAndBound(context, clock=clock, proof_s=proof_s)
        return cls(request, search, space, list(candidates(folded, context.cluster, space, blocks, pins)))

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
        if is_huge and method is not Method.EXHAUSTIVE:
            find_fallback_plan(search, self.candidates)
        if self.request.baselines and self.request.mode is Mode.AUTO_PARALLEL:
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
        self.baselines |= {b.name: Alternative(b.name, None, False, NOT_EVALUATED) for b in all_baselines()}
        for name, outcome, reason in price_baselines(context):
            cost = cost_of(outcome) if outcome else None
            what = str(outcome.candidate) if outcome else name
            self.baselines[name] = Alternative(what, cost, outcome is not None, reason, outcome)
            if outcome and _is_inside(outcome, self.space, context):
                self.search.update_incumbent(outcome)

    def stop(self) -> None:
        """Stop early: use the incumbent, or the fallback plan if there is none, or none that was searched.

        Raises:
            PlanError: When that does not fit.
        """
        search = self.search
        search.complete = False
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
            search.bound_s = min((search.context.compute_bound_s(c) for c in self.candidates), default=inf)

    def solution(self) -> Solution:
        """The best plan, its lower bound and the alternatives."""
        search = self.search
        best = self.search.best
        assert best is not None
        shown = alternatives(search.outcomes, SHOWN)
        return replace(
            solution_of(best, min(search.bound_s, best.step_s)),
            limit_bytes=max(search.context.limits(best.candidate)),
            candidates=tuple(Alternative(str(o.candidate), cost_of(o), True, "", o) for o in shown),
            baselines=self.baselines,
            complete=search.complete,
        )


def _check(graph: OpGraph, request: SearchRequest, clock: Callable[[], float], began: float) -> Callable[[], None]:
    """Raises `OutOfTime` past the deadline; a graph above `HUGE_OPS` ops always has one."""
    limit_s = request.limits.time_s
    if limit_s is None:
        limit_s = HUGE_TIME_S if len(graph.ops) > HUGE_OPS else inf
    deadline = began + limit_s

    def check() -> None:
        if clock() > deadline:
            raise OutOfTime

    return check


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
    graph: OpGraph, cluster: ClusterSpec, request: SearchRequest, check: Callable[[], None]
) -> tuple[SearchContext, StrategySpace, Pins]:
    machine = cluster.scaled(devices=1) if request.mode is Mode.STAND_ALONE else cluster
    pins = request.pins
    chain = chain_of(graph)
    blocks = chain.run.count if chain else 1
    check_pins(pins, graph, machine, blocks)
    space = pins.narrow(request.space)
    restrict = restriction_of(pins)
    if request.mode in {Mode.DATA_PARALLEL, Mode.STAND_ALONE}:
        only = (machine.devices,) if machine.devices > 1 else ()
        pins = replace(pins, mesh=pins.mesh or only)
        space = replace(space, stages=(1,), zero=(ZeroLevel.NONE,), modes=(Recompute.NONE,), microbatches=(1,))
        restrict = data_only
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
        check,
    )
    return context, space, pins


def _is_inside(outcome: Outcome, space: StrategySpace, context: SearchContext) -> bool:
    """Whether a baseline's plan belongs to the space searched, so that it may be the answer."""
    c = outcome.candidate
    state_shardings = {choice.state_sharding for stage in outcome.stages for choice in stage.choices.values()}
    modes = {choice.mode for stage in outcome.stages for choice in stage.choices.values()}
    return (
        (not space.stages or c.stages in space.stages)
        and (not space.microbatches or c.microbatches in space.microbatches)
        and state_shardings <= set(space.state_shardings)
        and modes <= {*context.modes, Recompute.NONE}
        and len(c.mesh.shape) <= space.max_axes
    )
