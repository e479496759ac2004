"""The entry point of strategy search: `solve(graph, cluster, ...)` gives the best `Solution`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TypeVar

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.sizes import format_memory
from jupyter_autotrain.errors import InfeasibleError, PlanError
from jupyter_autotrain.parallel.graph.prepare import PreparedGraph
from jupyter_autotrain.parallel.search.factors.lagrangian import relative_gap
from jupyter_autotrain.parallel.search.outer.context import OutOfTime, SearchContext
from jupyter_autotrain.parallel.search.outer.device_subset_search import DeviceSubsetSearch
from jupyter_autotrain.parallel.search.outer.search_run import SearchRun
from jupyter_autotrain.parallel.search.request.request import Method, SearchRequest
from jupyter_autotrain.parallel.search.solution import Solution

T = TypeVar("T")


def solve(
    graph: PreparedGraph,
    cluster: str | JsonObject | ClusterSpec,
    request: SearchRequest | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Solution:
    """The best plan for a graph on a cluster.

    An interrupt, or the end of the time limit, gives the best plan so far with its true gap; where there is none yet,
    a first plan is finished at once.

    Args:
        graph: A traced or built graph, after `prepare`.
        cluster: The machine, in any form `ClusterSpec.parse` reads.
        request: Mode, solver, limits, pins and space; the whole space by dynamic programming unless given.
        clock: Monotonic seconds.

    Raises:
        InfeasibleError: When no split fits, with the least memory that would do.
        PlanError: For a cyclic graph, an unknown device, pins that contradict something.
    """
    request = request or SearchRequest()
    began = clock()
    search_run, interrupted = retry_on_interrupt(
        lambda: SearchRun.of(graph, ClusterSpec.parse(cluster), request, clock, began)
    )
    if interrupted:
        _finish(search_run.stop)
    else:
        try:
            search_run.first_plans()
            if request.search is Method.DYNAMIC_PROGRAMMING:
                search_run.search.run(search_run.candidates)
        except (OutOfTime, KeyboardInterrupt):
            _finish(search_run.stop)
    subset_search = _finish(lambda: DeviceSubsetSearch.of(search_run, began))
    interrupted = _search_subsets(subset_search)
    if subset_search.best.best is None:
        raise _infeasible(search_run.search.context, subset_search.least_bytes)
    complete = search_run.search.complete and not interrupted
    return _finish(lambda: replace(_solution(search_run, subset_search), complete=complete, search_s=clock() - began))


def _search_subsets(subset_search: DeviceSubsetSearch) -> bool:
    """Search parts of the cluster; whether the user stopped that."""
    try:
        subset_search.run()
    except OutOfTime:
        return False  # all devices were searched to the end, which is what `complete` says
    except KeyboardInterrupt:
        return True
    return False


def _solution(search_run: SearchRun, subset_search: DeviceSubsetSearch) -> Solution:
    """The best plan; with the best step of all devices together, where some stay idle."""
    full_search = search_run.search
    best = subset_search.best
    if best is full_search:
        return _within(search_run.solution(), subset_search.bound_s)
    bound_s = min(full_search.bound_s, best.bound_s)
    best = replace(best, complete=full_search.complete, bound_s=bound_s)
    found = replace(search_run, search=best).solution()
    step_s = full_search.best.step_s if full_search.best else None
    found = replace(found, full_cluster=full_search.context.cluster, all_devices_s=step_s)
    return _within(found, subset_search.bound_s)


def _within(solution: Solution, bound_s: float) -> Solution:
    """A solution under one more bound."""
    least_s = min(solution.bound_s, bound_s)
    return replace(solution, bound_s=least_s, gap=relative_gap(solution.cost.step_s, least_s))


def retry_on_interrupt(work: Callable[[], T]) -> tuple[T, bool]:
    """Run a short function to its end, again from the start when an interrupt comes; returns whether one came."""
    try:
        return work(), False
    except KeyboardInterrupt:
        return work(), True


def _finish(work: Callable[[], T]) -> T:
    """The result of a short function, which an interrupt delays only."""
    return retry_on_interrupt(work)[0]


def _infeasible(context: SearchContext, least: float) -> PlanError:
    limit = context.cluster.device.limit_bytes(context.limit_bytes)
    if least == inf:
        return PlanError(
            "No plan agrees with the request: no mesh, number of microbatches and pins go together.",
            f"The cluster has {context.cluster.devices} devices.",
            "Drop a pin, or change the batch so that something divides it.",
        )
    return InfeasibleError(
        f"No split of the model fits {format_memory(limit)} per device on {context.cluster}.",
        f"The least memory that would do is {format_memory(least, up=True)} per device.",
        "Use devices with more memory, more devices, a smaller batch, or offload the optimizer to the host.",
        int(-(-least // 1)),
    )
