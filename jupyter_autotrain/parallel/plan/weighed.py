"""Counts what the plans of a solution send, so that they can be compared in bytes as well."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.plan.record import PlanRecord
from jupyter_autotrain.parallel.plan.traffic import most_sent_bytes
from jupyter_autotrain.parallel.search import Alternative, SearchRequest, Solution
from jupyter_autotrain.parallel.search.solution import solution_of

MOST_OPS = 10_000  # a few seconds for all alternatives
MOST_DIFFERENT = 2_000


def with_traffic(graph: OpGraph, request: SearchRequest, solution: Solution) -> Solution:
    """The solution with `sent_bytes` in all its costs; its alternatives no longer hold their outcomes.

    Time: that of pricing each plan's folded graph once; only the found plan's of huge graphs, and where no well-known
    plans are weighed, since then somebody waits at a slider.
    """
    different = len(graph.ops) - sum(run.length * (run.count - 1) for run in graph.runs)
    few = request.baselines and different <= MOST_DIFFERENT and len(graph.ops) <= MOST_OPS
    own = most_sent_bytes(PlanRecord(graph, request, solution))

    def counted(found: Alternative) -> Alternative:
        if found.outcome is None or found.cost is None or not few:
            return replace(found, outcome=None)
        rival = solution_of(found.outcome, inf) if found.outcome is not solution.outcome else None
        sent = most_sent_bytes(PlanRecord(graph, request, rival)) if rival else own
        return replace(found, cost=replace(found.cost, sent_bytes=sent), outcome=None)

    return replace(
        solution,
        cost=replace(solution.cost, sent_bytes=own),
        candidates=tuple(counted(found) for found in solution.candidates),
        baselines={name: counted(found) for name, found in solution.baselines.items()},
    )
