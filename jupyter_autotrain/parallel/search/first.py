"""A plan at once: what an interrupted search, or one of a huge graph, falls back on.

Graphs with layers have the instant search. Others get data parallelism on the fewest axes: every op along the batch,
or whole, so that only the ways to keep its parameters are left to choose. Recurrence: none, choices do not meet but in
memory (see `bounded`). Time linear in the graph for each number of microbatches tried, until one fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from jupyter_autotrain.parallel.cost.layout import Ints
from jupyter_autotrain.parallel.cost.model import Restriction
from jupyter_autotrain.parallel.graph.graph import Op
from jupyter_autotrain.parallel.search.baselines import data_only
from jupyter_autotrain.parallel.search.recursive import recursive
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.task import Task
from jupyter_autotrain.parallel.search.whole import Search, solve_candidate


def first_plan(search: Search, found: Sequence[Candidate]) -> None:
    """Offer one plan, whatever the time; none when no such plan fits. Sets the bound over all of `found`."""
    task = replace(search.task, check=lambda: None)
    if task.chain is not None:
        recursive(search, found)
    else:
        _data_parallel(search, task.restricted(_along_batch(task)), found)
    search.bound_s = min((task.compute_bound_s(c) for c in found), default=inf)


def _data_parallel(search: Search, task: Task, found: Sequence[Candidate]) -> None:
    whole = [c for c in found if c.stages == 1]
    axes = min((len(c.mesh.shape) for c in whole), default=0)
    for candidate in sorted((c for c in whole if len(c.mesh.shape) == axes), key=lambda c: c.microbatches):
        outcome, _, least = solve_candidate(task, candidate)
        search.least_bytes = min(search.least_bytes, least)
        if outcome:
            search.offer(outcome)
            return


def _along_batch(task: Task) -> Restriction:
    """One strategy per op: of those that agree with the pins the one along the batch, else the first."""

    def restrict(op: Op, table: Ints) -> Ints:
        rows = task.restrict(op, table) if task.restrict else table
        return data_only(op, rows)[:1]

    return restrict
