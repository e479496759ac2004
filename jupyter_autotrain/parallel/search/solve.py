"""The entry point of strategy search: `solve(graph, cluster, ...)` gives the best `Solution`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TypeVar

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.errors import InfeasibleError, PlanError
from jupyter_autotrain.parallel.choices import beyond
from jupyter_autotrain.parallel.graph.prepare import PreparedGraph
from jupyter_autotrain.parallel.search.factors.lagrangian import relative_gap
from jupyter_autotrain.parallel.search.naming import plan_name
from jupyter_autotrain.parallel.search.outer.branch_and_bound import alternatives
from jupyter_autotrain.parallel.search.outer.device_subset_search import DeviceSubsetSearch
from jupyter_autotrain.parallel.search.outer.executed import is_searched_so, uniform_plans
from jupyter_autotrain.parallel.search.outer.progress import OutOfTime, ProgressListener, ProgressMonitor
from jupyter_autotrain.parallel.search.outer.remedies import remedies
from jupyter_autotrain.parallel.search.outer.search_run import SearchRun
from jupyter_autotrain.parallel.search.outer.simplest import simplest_answer
from jupyter_autotrain.parallel.search.request.request import Method, Mode, SearchRequest
from jupyter_autotrain.parallel.search.solution import Solution, alternative_of, cost_of, decision_of, judged
from jupyter_autotrain.parallel.search.stage.outcome import Outcome

T = TypeVar("T")
SHOWN = 8  # alternatives kept in a solution


def solve(
    graph: PreparedGraph,
    cluster: str | JsonObject | ClusterSpec,
    request: SearchRequest | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    tell: ProgressListener | None = None,
) -> Solution:
    """Return the best plan for a graph on a cluster.

    An interrupt, or the end of the time limit, gives the best plan so far with its true gap; where there is none yet,
    a first plan is finished at once.

    Args:
        graph: A traced or built graph, after `prepare`.
        cluster: The machine, in any form `ClusterSpec.parse` reads.
        request: Mode, solver, limits, pins and space; the whole space by dynamic programming unless given.
        clock: Monotonic seconds.
        tell: Takes the progress of the search, many times a second.

    Raises:
        InfeasibleError: When no split fits, with the least memory that would do.
        PlanError: For a cyclic graph, an unknown device, pins that contradict something.
    """
    request = request or SearchRequest()
    began = clock()
    progress = ProgressMonitor(clock, began, tell=tell)
    search_run, interrupted = retry_on_interrupt(
        lambda: SearchRun.of(graph, ClusterSpec.parse(cluster), request, progress)
    )
    if interrupted:
        _finish(search_run.stop)
    else:
        try:
            search_run.first_plans()
            if request.search is Method.DYNAMIC_PROGRAMMING:
                search_run.search.run_parts(search_run.parts())
        except (OutOfTime, KeyboardInterrupt):
            _finish(search_run.stop)
    subset_search = _finish(lambda: DeviceSubsetSearch.of(search_run, began))
    interrupted = _search_subsets(subset_search)
    if subset_search.best.best is None:
        fault = _infeasible(search_run, subset_search.least_bytes)
        if not is_searched_so(request):
            raise fault
        return _exported(graph, cluster, request, progress, fault)
    complete = search_run.search.complete and not interrupted
    answer = _finish(lambda: simplest_answer(search_run, subset_search))
    return _finish(lambda: _solution(search_run, subset_search, answer, complete=complete, search_s=clock() - began))


def _exported(
    graph: PreparedGraph,
    cluster: str | JsonObject | ClusterSpec,
    request: SearchRequest,
    progress: ProgressMonitor,
    fault: PlanError,
) -> Solution:
    """Return the best plan of all where none was found among the uniform ones that run, which `fault` says."""
    try:
        found = solve(graph, cluster, replace(request, execute=False), clock=progress.clock, tell=progress.tell)
    except InfeasibleError as nothing:
        raise InfeasibleError(nothing.found, nothing.expected, fault.action, nothing.least_memory_bytes) from None
    if not beyond(found.graph, found.decision):
        return found  # as with unequal stages, which are pinned and not searched
    return replace(found, none_runs=f"{fault.found} {fault.expected} {fault.action}")


def _search_subsets(subset_search: DeviceSubsetSearch) -> bool:
    """Search parts of the cluster; whether the user stopped that."""
    try:
        subset_search.run()
    except OutOfTime:
        return False  # all devices were searched to the end, which is what `complete` says
    except KeyboardInterrupt:
        return True
    return False


def _solution(
    search_run: SearchRun, subset_search: DeviceSubsetSearch, answer: Outcome, *, complete: bool, search_s: float
) -> Solution:
    """Return the answer with the best plan that was found, under the least of all bounds."""
    full_search = search_run.search
    best_search = subset_search.best
    best = best_search.best
    assert best is not None
    bound_s = min(full_search.bound_s, best_search.bound_s, subset_search.bound_s, best.step_s, answer.step_s)
    model = answer.models[0]
    is_part = model.cluster.devices < full_search.context.cluster.devices
    return Solution(
        graph=model.graph,
        cluster=model.cluster,
        name=plan_name(answer),
        decision=decision_of(answer),
        cost=cost_of(answer),
        gap=relative_gap(answer.step_s, bound_s),
        bound_s=bound_s,
        limit_bytes=max(full_search.context.for_cluster(model.cluster).limits(answer.candidate)),
        search_s=search_s,
        best=None if best is answer else judged(best),
        candidates=tuple(map(alternative_of, alternatives(best_search.outcomes, SHOWN))),
        baselines=search_run.baselines,
        complete=complete,
        full_cluster=full_search.context.cluster if is_part else None,
        all_devices_s=full_search.best.step_s if is_part and full_search.best else None,
    )


def _would_fit(search_run: SearchRun, limit_bytes: float) -> str:
    if search_run.request.mode not in {Mode.AUTO_PARALLEL, Mode.HYBRID_PARALLEL}:
        return (
            "Use mode='auto_parallel', which also shares out states, layers and products; or devices with more memory."
        )
    context = replace(search_run.search.context, progress=ProgressMonitor())
    found = remedies(uniform_plans(search_run.request, context, search_run.space), limit_bytes)
    if not found:
        return "Use devices with more memory, a smaller batch, or a smaller model."
    return f"What would fit: {', or '.join(found)}."


def retry_on_interrupt(work: Callable[[], T]) -> tuple[T, bool]:
    """Run a short function to its end, again from the start when an interrupt comes; returns whether one came."""
    try:
        return work(), False
    except KeyboardInterrupt:
        return work(), True


def _finish(work: Callable[[], T]) -> T:
    """Return the result of a short function, which an interrupt delays only."""
    return retry_on_interrupt(work)[0]


def _infeasible(search_run: SearchRun, least: float) -> PlanError:
    context = search_run.search.context
    limit = context.cluster.device.limit_bytes(context.limit_bytes)
    plan = "plan that runs" if is_searched_so(search_run.request) else "split of the model"
    if least == inf:
        return PlanError(
            f"No {plan} agrees with the request: no mesh, number of microbatches and pins go together.",
            f"The cluster has {context.cluster.devices} devices.",
            "Drop a pin, or change the batch so that something divides it.",
        )
    return InfeasibleError(
        f"No {plan} fits {format_memory(limit)} per device on {context.cluster}.",
        f"The least memory that would do is {format_memory(least, up=True)} per device.",
        _finish(lambda: _would_fit(search_run, limit)),
        int(-(-least // 1)),
    )
