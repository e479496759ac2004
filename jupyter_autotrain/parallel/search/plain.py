"""Graphs without repeated blocks: one stage, one elimination over all ops (see `bounded`), no recompute."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.search.bounded import minimise_bounded
from jupyter_autotrain.parallel.search.dual import Infeasible
from jupyter_autotrain.parallel.search.loads import Choice, load_of, problem_of
from jupyter_autotrain.parallel.search.outcome import Outcome, Stage
from jupyter_autotrain.parallel.search.problem import Assignment
from jupyter_autotrain.parallel.search.space import Candidate

NODES = 2_000  # of branch and bound: about half a second; what stays open is the gap


def plain_outcome(
    model: CostModel, candidate: Candidate, limit_bytes: float, check: Callable[[], None]
) -> tuple[Outcome | None, float, float]:
    """(outcome when one fits, bound, least bytes when nothing fits)."""
    problem = problem_of(model, check)
    try:
        found = minimise_bounded(problem, limit_bytes, nodes=NODES, check=check)
    except Infeasible as full:
        return None, inf, full.least_bytes
    outcome = plain_from(model, candidate, found.assignment, found.bound_s)
    model.forget()  # its tables are as many as the ops, and each candidate has its own
    return outcome, found.bound_s, inf


def plain_from(model: CostModel, candidate: Candidate, assignment: Assignment, bound_s: float) -> Outcome:
    """An assignment of `loads.problem_of` as an outcome of one stage."""
    count, options = len(model.graph.ops), model.settings.options
    chosen = {op: Choice(assignment.get(op, 0), options[assignment.get(count + op, 0)]) for op in range(count)}
    stage = Stage(range(0), chosen, load_of(model, chosen, range(count)), 0.0, 1.0, model.roofline.device)
    return Outcome(candidate, (stage,), bound_s, (model,))
