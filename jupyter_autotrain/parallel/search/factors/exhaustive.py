"""The oracle: every assignment, one by one in effect.

Recurrence: none; min over x in the product of all value sets. Time and memory S^n for n variables of S values: only for
tests and tiny graphs. Source: the definition.
"""

from __future__ import annotations

from math import inf, prod

import numpy as np

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.search.factors.elimination import joined
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
    seconds = joined([CostTable(f.scope, f.seconds) for f in problem.factors], scope, sizes)
    held = joined(problem.bytes_only(), scope, sizes)
    seconds = np.where(held <= limit_bytes, seconds, inf)
    best_s = seconds.min()
    if not np.isfinite(best_s):
        return None
    flat = int(np.where(seconds == best_s, held, inf).argmin())
    values = np.unravel_index(flat, tuple(sizes))
    return float(best_s), {v: int(x) for v, x in zip(scope, values, strict=True)}
