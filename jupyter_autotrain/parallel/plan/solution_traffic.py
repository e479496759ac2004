"""Counts what the plans of a solution send, so that they can be compared in bytes as well."""

from __future__ import annotations

from dataclasses import replace

from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.traffic import most_sent_bytes
from jupyter_autotrain.parallel.search import Alternative, SearchRequest, Solution
from jupyter_autotrain.parallel.search.decisions import decision_of

MOST_OPS = 10_000  # a few seconds for all alternatives
MOST_DIFFERENT = 2_000


def with_traffic(request: SearchRequest, solution: Solution) -> Solution:
    """The solution with `sent_bytes` in all its costs; its alternatives no longer hold their outcomes.

    Time: that of pricing each plan's folded graph once; only the found plan's of huge graphs, and where the request
    has no baselines, as while a slider moves.
    """
    every = request.baselines and _is_small(solution.graph)
    found = DecisionCosts.of(solution.graph, solution.cluster, solution.decision, request)
    return replace(
        solution,
        cost=replace(solution.cost, sent_bytes=most_sent_bytes(found)),
        candidates=tuple(_counted(other, request, every=every) for other in solution.candidates),
        baselines={name: _counted(other, request, every=every) for name, other in solution.baselines.items()},
    )


def _is_small(graph: OpGraph) -> bool:
    different = len(graph.ops) - sum(run.length * (run.count - 1) for run in graph.repeated_blocks)
    return different <= MOST_DIFFERENT and len(graph.ops) <= MOST_OPS


def _counted(other: Alternative, request: SearchRequest, *, every: bool) -> Alternative:
    outcome = other.outcome
    if outcome is None or other.cost is None or not every:
        return replace(other, outcome=None)
    model = outcome.models[0]
    costs = DecisionCosts.of(model.graph, model.cluster, decision_of(outcome), request)
    return replace(other, cost=replace(other.cost, sent_bytes=most_sent_bytes(costs)), outcome=None)
