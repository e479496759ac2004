"""Finds the best split: `solve(graph, cluster, request)` gives a `Solution` with its certificate.

From a notebook's call to the recurrence, each function calling the next:

    plan                      parallel/api.py
    solve                     solve.py: the plans to beat, then all candidates, then fewer devices
    BranchAndBound.run_parts  outer/branch_and_bound.py: which candidates can still win
    solve_candidate           outer/branch_and_bound.py: the best plan of one candidate
    StageProblem.minimise     stage/stage_problem.py: the best plan of one stage within its memory
    StageProblem.solve        stage/stage_problem.py: the best plan at one multiplier of memory
    ChainTables.path          stage/folding.py: the recurrence over the blocks

A candidate of several stages goes from `solve_candidate` over `solve_partitions` to its stage problems; a graph without
repeated blocks to `solve_unrolled` instead.
"""

from jupyter_autotrain.parallel.search.outer.simplest import SHARE_PUBLISHED, default_share
from jupyter_autotrain.parallel.search.request.request import (
    PROOF_S,
    Method,
    Mode,
    Pins,
    SearchLimits,
    SearchRequest,
    StrategySpace,
)
from jupyter_autotrain.parallel.search.solution import Alternative, Cost, RankCost, Solution
from jupyter_autotrain.parallel.search.solve import retry_on_interrupt, solve

__all__ = [
    "PROOF_S",
    "SHARE_PUBLISHED",
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
    "default_share",
    "retry_on_interrupt",
    "solve",
]
