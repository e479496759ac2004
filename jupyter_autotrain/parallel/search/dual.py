"""The best price of a byte: the Lagrangian dual of "least seconds within a memory limit".

Recurrence: every assignment x is a line L_x(p) = seconds(x) + p (bytes(x) - limit) of the price p; the dual
max over p of min over x of L_x(p) is found by intersecting the lines of two assignments that bracket the limit and
solving at that price, until no line lies below the crossing. Each round is one solve; in practice four to eight rounds.

Source: Geoffrion 1974; Handler and Zang 1980 (the bracketing of constrained shortest paths).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

ROUNDS = 40
SLACK = 1e-9  # relative; seconds carry rounding

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point(Generic[T]):
    """An assignment as a line of the dual; `what` is the assignment itself."""

    seconds: float
    bytes: float
    what: T


@dataclass(frozen=True, slots=True)
class Priced(Generic[T]):
    """The answer at one price: a lower bound on seconds + price * bytes, and an assignment near it."""

    value: float
    point: Point[T]


@dataclass(frozen=True, slots=True)
class Dual(Generic[T]):
    """The best price found.

    Attributes:
        price: Seconds per byte.
        at: The assignment solved at that price.
        best: The fastest assignment seen that fits.
        bound_s: No assignment that fits is faster.
        heavy: The last assignment above the limit.
        light: The last one within it.
    """

    price: float
    at: Point[T]
    best: Point[T]
    bound_s: float
    heavy: Point[T]
    light: Point[T]


@dataclass(frozen=True, slots=True)
class Bracket(Generic[T]):
    """An assignment above the limit, one within it, and what is proved already, at which price of a byte."""

    heavy: Point[T]
    light: Point[T]
    bound_s: float
    price: float = 0.0


class Infeasible(Exception):  # noqa: N818 - a signal inside the search, not an error to show
    """No assignment fits; `least_bytes` would do. Not `proved` where some were not looked at."""

    def __init__(self, least_bytes: float, *, proved: bool = True) -> None:
        super().__init__(f"{least_bytes:.0f} bytes would do")
        self.least_bytes = least_bytes
        self.proved = proved


def relative_gap(seconds: float, bound_s: float) -> float:
    """(seconds - bound) / seconds; 0.0 when they differ by rounding only."""
    gap = (seconds - bound_s) / seconds if seconds > 0 else 0.0
    return gap if gap > SLACK else 0.0


def best_price(
    solve: Callable[[float], Priced[T]],
    known: Bracket[T],
    limit: float,
    *,
    rounds: int = ROUNDS,
    cutoff_s: float = inf,
) -> Dual[T]:
    """Maximise the dual between an assignment above the limit and one within it.

    Raises:
        Infeasible: With infinity, as soon as the bound reaches `cutoff_s`.
    """
    heavy, light = known.heavy, known.light
    best, bound, kept = light, known.bound_s, (known.price, heavy)
    for _ in range(rounds):
        price = max(0.0, (light.seconds - heavy.seconds) / (heavy.bytes - light.bytes))
        solved = solve(price)
        value, point = solved.value - price * limit, solved.point
        if value >= bound:
            bound, kept = value, (price, point)
        if bound >= cutoff_s:
            raise Infeasible(inf)
        fits = point.bytes <= limit
        if fits and point.seconds < best.seconds:
            best = point
        crossing = heavy.seconds + price * (heavy.bytes - limit)
        reached = point.seconds + price * (point.bytes - limit)
        if reached >= crossing - SLACK * abs(crossing):
            break
        heavy, light = (heavy, point) if fits else (point, light)
    return Dual(kept[0], kept[1], best, bound, heavy, light)
