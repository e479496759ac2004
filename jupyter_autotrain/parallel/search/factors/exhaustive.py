"""Exhaustive enumeration: the oracle of the other solvers, for tiny graphs.

Variables: as `problem`.
Objective: as `problem`, ties by memory (see `problem.rank`).
Constraints: sum_f bytes_f <= limit.
Recurrence: none; min over all x in the product of the value sets.
Complexity: time and memory S^n for n variables of S values; at most 2^24 assignments.
Source: the definition.
Oracle: tests/oracle/test_search_exact.py::test_exhaustion_is_the_definition
"""

from __future__ import annotations

from math import inf, prod

import numpy as np

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.search.factors.elimination import sum_tables
from jupyter_autotrain.parallel.search.factors.problem import Assignment, CostTable, Problem

LIMIT = 1 << 24


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
