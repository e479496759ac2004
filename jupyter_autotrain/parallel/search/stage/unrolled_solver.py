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
from math import inf, prod

import numpy as np

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.search.factors.elimination import sum_tables
from jupyter_autotrain.parallel.search.factors.factors import OpChoice, cost_breakdown_of, problem_of
from jupyter_autotrain.parallel.search.factors.lagrangian import DoesNotFit
from jupyter_autotrain.parallel.search.factors.lagrangian_branch_and_bound import minimise_bounded
from jupyter_autotrain.parallel.search.factors.problem import Assignment, CostTable, Problem
from jupyter_autotrain.parallel.search.request.request import Candidate
from jupyter_autotrain.parallel.search.stage.outcome import CandidateResult, Outcome, Stage

LIMIT = 1 << 24  # of the plans that are looked at one by one
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


def exhaustive(problem: Problem, limit_bytes: float = inf) -> tuple[float, Assignment] | None:
    """Least seconds and an assignment with at most `limit_bytes`; None when no assignment fits.

    Raises:
        PlanError: When there are more than 2**24 assignments.
    """
    scope = tuple(problem.sizes)
    sizes = [problem.sizes[v] for v in scope]
    if prod(sizes) > LIMIT:
        raise PlanError(
            f"The exhaustive search would look at {prod(sizes):.1e} assignments.",
            f"It is the oracle for tiny graphs: at most {LIMIT:.1e}.",
            "Use search='dynamic_programming', which is exact as well.",
        )
    seconds = sum_tables([CostTable(f.scope, f.seconds) for f in problem.factors], scope, sizes)
    held = sum_tables(problem.bytes_only(), scope, sizes)
    seconds = np.where(held <= limit_bytes, seconds, inf)
    best_s = seconds.min()
    if not np.isfinite(best_s):
        return None
    flat = int(np.where(seconds == best_s, held, inf).argmin())
    values = np.unravel_index(flat, tuple(sizes))
    return float(best_s), {v: int(x) for v, x in zip(scope, values, strict=True)}
