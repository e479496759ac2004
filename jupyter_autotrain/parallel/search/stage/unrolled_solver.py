"""Graphs without repeated blocks: one stage, one problem over all ops, no recompute.

Variables: per op its strategy and the way to keep its parameters.
Objective: minimise microbatches * micro_s + step_s, ties of compared plans by memory (see `problem.rank`).
Constraints: sum of bytes <= limit.
Recurrence: that of `lagrangian_branch_and_bound` on the whole graph.
Complexity: as there, with `NODES` nodes at most; what stays open is the gap.
Source: as there.
Oracle: tests/oracle/test_search_plans.py::test_the_exact_search_equals_the_oracle_under_a_memory_bound
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.search.factors.exhaustive import exhaustive
from jupyter_autotrain.parallel.search.factors.factors import OpChoice, cost_breakdown_of, problem_of
from jupyter_autotrain.parallel.search.factors.lagrangian import DoesNotFit
from jupyter_autotrain.parallel.search.factors.lagrangian_branch_and_bound import minimise_bounded
from jupyter_autotrain.parallel.search.factors.problem import Assignment
from jupyter_autotrain.parallel.search.request.request import Candidate
from jupyter_autotrain.parallel.search.stage.outcome import CandidateResult, Outcome, Stage

NODES = 2_000  # of branch and bound: about half a second; what stays open is the gap


def solve_unrolled(
    model: CostModel, candidate: Candidate, limit_bytes: float, check: Callable[[], None]
) -> CandidateResult:
    """Return the best plan of a candidate, with a bound."""
    problem = problem_of(model, check)
    try:
        found = minimise_bounded(problem, limit_bytes, nodes=NODES, check=check)
    except DoesNotFit as full:
        return CandidateResult(None, inf, full.least_bytes)
    outcome = outcome_of_assignment(model, candidate, found.assignment, found.bound_s)
    model.tables.clear()  # its tables are as many as the ops, and each candidate has its own
    return CandidateResult(outcome, found.bound_s)


def outcome_of_assignment(model: CostModel, candidate: Candidate, assignment: Assignment, bound_s: float) -> Outcome:
    """Return an assignment of `factors.problem_of` as an outcome of one stage."""
    count = len(model.graph.ops)
    shardings = model.settings.state_shardings
    chosen = {op: OpChoice(assignment.get(op, 0), shardings[assignment.get(count + op, 0)]) for op in range(count)}
    stage = Stage(range(0), chosen, cost_breakdown_of(model, chosen, range(count)), 0.0, 1.0, model.roofline.device)
    return Outcome(candidate, (stage,), bound_s, (model,))


def exhaustive_outcome(model: CostModel, candidate: Candidate, limit_bytes: float) -> Outcome | None:
    """Return the best plan of a candidate with one stage and no recompute, by looking at every one.

    None when none fits.
    """
    found = exhaustive(problem_of(model), limit_bytes)
    return outcome_of_assignment(model, candidate, found[1], found[0]) if found else None
