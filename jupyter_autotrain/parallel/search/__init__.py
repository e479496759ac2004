"""Finds the best split: `solve(graph, cluster, request)` gives a `Solution` with its certificate."""

from jupyter_autotrain.parallel.search.request.request import PROOF_S, Method, Mode, SearchLimits, SearchRequest
from jupyter_autotrain.parallel.search.request.space import Pins, StrategySpace
from jupyter_autotrain.parallel.search.solution import Alternative, Cost, RankCost, Solution
from jupyter_autotrain.parallel.search.solve import retry_on_interrupt, solve

__all__ = [
    "PROOF_S",
    "Alternative",
    "Cost",
    "Method",
    "Mode",
    "Pins",
    "RankCost",
    "SearchLimits",
    "SearchRequest",
    "Solution",
    "StrategySpace",
    "retry_on_interrupt",
    "solve",
]
