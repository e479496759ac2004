"""The Lagrangian dual of "least seconds within a memory limit".

Variables: the multiplier y >= 0 [s/byte].
Objective: maximise L(y) = min over x of  seconds(x) + y (bytes(x) - limit).
Constraints: none; the memory limit is the relaxed one.
Recurrence: every assignment x is a line of y, so L is concave; from two assignments that bracket the limit, h above and
    l within it,

    y' = (seconds(l) - seconds(h)) / (bytes(h) - bytes(l));   x' = argmin at y' replaces h or l

    until no line lies below the crossing.
Complexity: one minimisation per round; four to eight rounds in practice, at most `ROUNDS`.
Source: Geoffrion 1974 (weak duality); Handler and Zang 1980 (the bracketing of constrained shortest paths).
Oracle: tests/oracle/test_search_exact.py::test_the_dual_is_its_value_at_the_best_multiplier_and_never_above_the_optimum
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from jupyter_autotrain.parallel.search.factors.problem import Rank, rank

ROUNDS = 40
SLACK = 1e-9  # relative; seconds carry rounding

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DualPoint(Generic[T]):
    """An assignment with its line of the dual."""

    seconds: float
    bytes: float
    assignment: T

    @property
    def rank(self) -> Rank:
        """The order of plans."""
        return rank(self.seconds, self.bytes)


@dataclass(frozen=True, slots=True)
class Relaxation(Generic[T]):
    """The answer at one multiplier: a lower bound on seconds + multiplier * bytes, and an assignment near it."""

    value: float
    point: DualPoint[T]


@dataclass(frozen=True, slots=True)
class LagrangianDual(Generic[T]):
    """The best multiplier found.

    Attributes:
        multiplier: Seconds per byte.
        at_multiplier: The assignment solved at that multiplier.
        best: The fastest assignment seen that fits.
        bound_s: No assignment that fits is faster.
        infeasible: The last assignment above the limit.
        feasible: The last one within it.
    """

    multiplier: float
    at_multiplier: DualPoint[T]
    best: DualPoint[T]
    bound_s: float
    infeasible: DualPoint[T]
    feasible: DualPoint[T]


@dataclass(frozen=True, slots=True)
class Bracket(Generic[T]):
    """An assignment above the limit, one within it, and what is proved already, at which multiplier."""

    infeasible: DualPoint[T]
    feasible: DualPoint[T]
    bound_s: float
    multiplier: float = 0.0


class NoPlan(Exception):  # noqa: N818 - a result inside the search, not an error to show
    """No plan came of a solver; `least_bytes` would do, where that is known.

    NoPlan
    ├── DoesNotFit   proved: every plan needs more than the limit
    ├── Pruned       proved: no plan is faster than the one to beat
    └── Unknown      some plans were not looked at
    """

    def __init__(self, least_bytes: float = inf) -> None:
        super().__init__(f"{least_bytes:.0f} bytes would do")
        self.least_bytes = least_bytes


class DoesNotFit(NoPlan):
    """No plan fits; one with `least_bytes` would."""


class Pruned(NoPlan):
    """Nothing faster than the plan to beat can exist."""


class Unknown(NoPlan):
    """Nothing was found, but not everything was looked at."""


def relative_gap(seconds: float, bound_s: float) -> float:
    """(seconds - bound) / seconds; 0.0 when they differ by rounding only."""
    gap = (seconds - bound_s) / seconds if seconds > 0 else 0.0
    return gap if gap > SLACK else 0.0


def maximise_dual(
    solve: Callable[[float], Relaxation[T]],
    known: Bracket[T],
    limit: float,
    *,
    rounds: int = ROUNDS,
    cutoff_s: float = inf,
) -> LagrangianDual[T]:
    """Maximise the dual between an assignment above the limit and one within it.

    Raises:
        Pruned: As soon as the bound reaches `cutoff_s`.
    """
    infeasible = known.infeasible
    feasible = known.feasible
    best = feasible
    bound = known.bound_s
    kept = (known.multiplier, infeasible)
    for _ in range(rounds):
        multiplier = max(0.0, (feasible.seconds - infeasible.seconds) / (infeasible.bytes - feasible.bytes))
        solved = solve(multiplier)
        value = solved.value - multiplier * limit
        point = solved.point
        if value >= bound:
            bound = value
            kept = (multiplier, point)
        if bound >= cutoff_s:
            raise Pruned
        fits = point.bytes <= limit
        if fits and point.rank < best.rank:
            best = point
        crossing = infeasible.seconds + multiplier * (infeasible.bytes - limit)
        reached = point.seconds + multiplier * (point.bytes - limit)
        if reached >= crossing - SLACK * abs(crossing):
            break
        infeasible, feasible = (infeasible, point) if fits else (point, feasible)
    return LagrangianDual(kept[0], kept[1], best, bound, infeasible, feasible)
