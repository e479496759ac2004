"""A first plan in linear time: for an interrupted search, and for a huge graph before anything else.

Variables: with repeated blocks as `heuristic`; else the microbatches, and how each op's parameters are kept.
Objective: any plan that fits; of the ways to keep parameters the fastest.
Constraints: memory; every op along the batch, or whole, on the fewest axes.
Recurrence: none; choices share the memory limit only (see `lagrangian_branch_and_bound`).
Complexity: linear in the graph for each number of microbatches tried, until one fits.
Source: data parallelism.
Oracle: tests/oracle/test_search_stopped.py::test_no_time_at_all_still_gives_a_plan
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from jupyter_autotrain.parallel.arrays import Ints
from jupyter_autotrain.parallel.cost.model import Restriction
from jupyter_autotrain.parallel.graph.graph import LoopRole, Op
from jupyter_autotrain.parallel.search.outer.branch_and_bound import BranchAndBound, solve_candidate
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.outer.heuristic import heuristic_search
from jupyter_autotrain.parallel.search.outer.layouts import loop_of
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.request.request import Candidate


def find_fallback_plan(search: BranchAndBound, candidates: Sequence[Candidate]) -> None:
    """Solve one plan, whatever the time; none when no such plan fits. Sets the bound over all `candidates`."""
    context = replace(search.context, progress=ProgressMonitor())
    if context.chain is not None:
        heuristic_search(search, candidates)
    else:
        _data_parallel(search, replace(context, restriction=_along_batch(context)), candidates)
    search.bound_s = min(map(context.compute_bound_s, candidates), default=inf)


def _data_parallel(search: BranchAndBound, context: SearchContext, candidates: Sequence[Candidate]) -> None:
    single_stage = [c for c in candidates if c.stages == 1]
    axes = min((len(c.mesh.shape) for c in single_stage), default=0)
    for candidate in sorted((c for c in single_stage if len(c.mesh.shape) == axes), key=lambda c: c.microbatches):
        result = solve_candidate(context, candidate)
        search.least_bytes = min(search.least_bytes, result.least_bytes)
        if result.outcome:
            search.update_incumbent(result.outcome)
            return


def data_only(op: Op, table: Ints) -> Ints:
    """Return the rows that split along the batch on every axis; the first where an op has none."""
    rows = table[(table == loop_of(op, LoopRole.BATCH)).all(axis=1)]
    return rows if len(rows) else table[:1]


def _along_batch(context: SearchContext) -> Restriction:
    """One strategy per op: of those that agree with the pins the one along the batch, else the first."""

    def restrict(op: Op, table: Ints) -> Ints:
        rows = context.restriction(op, table) if context.restriction else table
        return data_only(op, rows)[:1]

    return restrict
