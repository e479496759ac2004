"""Exact minimisation under a memory limit: a price on bytes, then branch and bound.

Recurrence: for a price p >= 0 per byte the dual

    L(p) = min over x of seconds(x) + p (bytes(x) - limit)        (one elimination, see `elimination`)

is a lower bound on the answer. It is concave; its best p is found by intersecting the lines of the two assignments
that bracket the limit (Handler and Zang 1980), in a few eliminations. What remains between the bound and the best
assignment that fits is searched depth first: taking variables against the order of elimination, each bucket gives the
exact least completion of a partial assignment in priced cost, in seconds and in bytes, and whatever cannot beat the
best is cut. Time: eliminations plus visited nodes; with a node limit the answer carries its true gap.

Source: Geoffrion 1974 (Lagrangian relaxation); Marinescu and Dechter 2009 (branch and bound on bucket costs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from jupyter_autotrain.parallel.search.elimination import Reduction, eliminate, min_fill_order
from jupyter_autotrain.parallel.search.problem import Assignment, Problem, Variable

NODES = 20_000
ROUNDS = 40
SLACK = 1e-9  # relative; bytes are whole numbers below 2**53, seconds carry rounding


def relative_gap(seconds: float, bound_s: float) -> float:
    """(seconds - bound) / seconds; 0.0 when they differ by rounding only."""
    gap = (seconds - bound_s) / seconds if seconds > 0 else 0.0
    return gap if gap > SLACK else 0.0


@dataclass(frozen=True, slots=True)
class Bounded:
    """An answer with its certificate: no assignment that fits takes fewer than `bound_s` seconds."""

    seconds: float
    bytes: float
    assignment: Assignment
    bound_s: float

    @property
    def gap(self) -> float:
        """Relative distance to the bound; 0.0 when proved best."""
        return relative_gap(self.seconds, self.bound_s)


@dataclass(frozen=True, slots=True)
class _Point:
    """An assignment as a line of the dual."""

    seconds: float
    bytes: float
    assignment: Assignment


class Infeasible(Exception):  # noqa: N818 - a signal inside the search, not an error to show
    """No assignment fits; `least_bytes` would do."""

    def __init__(self, least_bytes: float) -> None:
        super().__init__(f"{least_bytes:.0f} bytes would do")
        self.least_bytes = least_bytes


def minimise_bounded(
    problem: Problem, limit_bytes: float = inf, *, nodes: int = NODES, check: Callable[[], None] | None = None
) -> Bounded:
    """The best assignment with at most `limit_bytes`, and how good it is.

    Raises:
        Infeasible: When nothing fits, with the least memory that would do.
    """
    order = min_fill_order([f.scope for f in problem.factors], frozenset())

    def solve(price: float) -> tuple[Reduction, _Point]:
        reduction = eliminate(problem.priced(price), order=order, check=check)
        chosen = reduction.decode()
        return reduction, _Point(problem.seconds_of(chosen), problem.bytes_of(chosen), chosen)

    free, fastest = solve(0.0)
    if fastest.bytes <= limit_bytes:
        return Bounded(
            fastest.seconds, fastest.bytes, fastest.assignment, free.constant if not free.exact else fastest.seconds
        )
    least = eliminate(problem.bytes_only(), order=order, check=check)
    smallest = least.decode()
    light = _Point(problem.seconds_of(smallest), problem.bytes_of(smallest), smallest)
    if light.bytes > limit_bytes:
        raise Infeasible(light.bytes)
    priced, best, bound = _best_price(solve, fastest, light, limit_bytes)
    if not (free.exact and priced[1].exact) or best.seconds <= bound * (1 + SLACK):
        return Bounded(best.seconds, best.bytes, best.assignment, min(bound, best.seconds))
    search = _Search(problem, limit_bytes, best, priced, (free, least), nodes)
    return search.run(bound)


def _best_price(
    solve: Callable[[float], tuple[Reduction, _Point]], heavy: _Point, light: _Point, limit: float
) -> tuple[tuple[float, Reduction], _Point, float]:
    """Maximise the dual. Returns (price, its reduction), the best point that fits, and the bound."""
    best, bound = light, heavy.seconds
    kept: tuple[float, Reduction] | None = None
    for _ in range(ROUNDS):
        price = (light.seconds - heavy.seconds) / (heavy.bytes - light.bytes)
        reduction, point = solve(max(price, 0.0))
        value = reduction.constant - max(price, 0.0) * limit
        if kept is None or value > bound:
            kept, bound = (max(price, 0.0), reduction), max(bound, value)
        if point.bytes <= limit and point.seconds < best.seconds:
            best = point
        line = heavy.seconds + price * (heavy.bytes - limit)
        if value >= line - SLACK * abs(line):
            break
        heavy, light = (heavy, point) if point.bytes <= limit else (point, light)
    assert kept is not None
    return kept, best, bound


class _Search:
    """Depth-first search over a reduction's buckets, three bounds at once."""

    def __init__(
        self,
        problem: Problem,
        limit: float,
        best: _Point,
        priced: tuple[float, Reduction],
        others: tuple[Reduction, Reduction],
        nodes: int,
    ) -> None:
        self._problem, self._limit, self._best, self._nodes = problem, limit, best, nodes
        self._price = priced[0]
        self._reductions = (priced[1], *others)
        self._open_bound = inf
        self._chosen: dict[Variable, int] = {}
        byte_buckets = {b.variable: b for b in others[1].buckets if b.tables}
        self._layers = [
            (p, f, byte_buckets.get(p.variable))
            for p, f in zip(reversed(priced[1].buckets), reversed(others[0].buckets), strict=True)
        ]

    def run(self, bound: float) -> Bounded:
        """Search to the end, or to the node limit."""
        priced, free, least = (r.constant for r in self._reductions)
        self._visit(0, (priced - self._price * self._limit, free, least))
        proved = min(self._best.seconds, max(bound, min(self._open_bound, self._best.seconds)))
        return Bounded(self._best.seconds, self._best.bytes, self._best.assignment, proved)

    def _visit(self, depth: int, bounds: tuple[float, float, float]) -> None:
        if depth == len(self._layers):
            self._leaf()
            return
        if self._nodes <= 0:
            self._open_bound = min(self._open_bound, max(bounds[0], bounds[1]))
            return
        priced, free, least = self._layers[depth]
        rows = [bucket.row(self._chosen) if bucket else None for bucket in (priced, free, least)]
        options = [row - row.min() if row is not None else None for row in rows]
        first = options[0]
        assert first is not None
        for value in first.argsort(kind="stable").tolist():
            after = (
                bounds[0] + float(first[value]),
                bounds[1] + (float(options[1][value]) if options[1] is not None else 0.0),
                bounds[2] + (float(options[2][value]) if options[2] is not None else 0.0),
            )
            if after[0] >= self._best.seconds * (1 - SLACK):
                break
            if after[1] >= self._best.seconds * (1 - SLACK) or after[2] > self._limit * (1 + SLACK):
                continue
            self._nodes -= 1
            self._chosen[priced.variable] = value
            self._visit(depth + 1, after)
            del self._chosen[priced.variable]

    def _leaf(self) -> None:
        chosen = dict(self._chosen)
        seconds, held = self._problem.seconds_of(chosen), self._problem.bytes_of(chosen)
        if held <= self._limit and seconds < self._best.seconds:
            self._best = _Point(seconds, held, chosen)
