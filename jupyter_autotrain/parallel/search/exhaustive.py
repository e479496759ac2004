"""The oracle: every assignment, one by one in effect.

Recurrence: none; min over x in the product of all value sets. Time and memory S^n for n variables of S values: only for
tests and tiny graphs. Source: the definition.
"""

from __future__ import annotations

from math import inf, prod

import numpy as np

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.search.elimination import joined
from jupyter_autotrain.parallel.search.loads import problem_of
from jupyter_autotrain.parallel.search.outcome import Outcome
from jupyter_autotrain.parallel.search.plain import plain_from
from jupyter_autotrain.parallel.search.problem import Assignment, Problem, Table
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.task import Task

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
    seconds = joined([Table(f.scope, f.seconds) for f in problem.factors], scope, sizes)
    held = joined(problem.bytes_only(), scope, sizes)
    seconds = np.where(held <= limit_bytes, seconds, inf)
    flat = int(seconds.argmin())
    if not np.isfinite(seconds.flat[flat]):
        return None
    values = np.unravel_index(flat, tuple(sizes))
    return float(seconds.flat[flat]), {v: int(x) for v, x in zip(scope, values, strict=True)}


def exhaustive_outcome(task: Task, candidate: Candidate) -> Outcome | None:
    """The best plan of a candidate with one stage and no recompute, by looking at every one; None when none fits."""
    (model,) = task.models(candidate)
    found = exhaustive(problem_of(model), task.limits(candidate)[0])
    return plain_from(model, candidate, found[1], found[0]) if found else None
