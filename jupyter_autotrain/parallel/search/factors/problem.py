"""The problem all solvers share: pick one value per variable, least seconds, bytes under a limit.

    minimise   sum_f seconds_f(x_scope(f))   subject to   sum_f bytes_f(x_scope(f)) <= limit

A variable is an op (its values are strategies) or a way to keep an op's parameters; a factor is a table over one, two
or more variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats

Variable = int
Assignment = dict[Variable, int]
Rank = tuple[float, float]


def rank(seconds: float, held_bytes: float) -> Rank:
    """Return the order in which plans are compared: by seconds, and of equally fast ones by bytes.

    A minimisation by seconds alone may return any of equally fast assignments; `exhaustive` returns the first by this
    order. Only the Lagrangian combines both: seconds + multiplier * bytes (see `lagrangian`).
    """
    return seconds, held_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Seconds and bytes for every combination of the scope's values; `table.ndim == len(scope)`."""

    scope: tuple[Variable, ...]
    seconds: Floats
    bytes: Floats | None = None

    def index(self, chosen: Mapping[Variable, int]) -> tuple[int, ...]:
        """Where an assignment is in the tables."""
        return tuple(chosen[v] for v in self.scope)

    def weighted(self, multiplier: float) -> CostTable:
        """One table: seconds + multiplier * bytes."""
        if self.bytes is None or multiplier == 0.0:
            return CostTable(self.scope, self.seconds)
        return CostTable(self.scope, self.seconds + multiplier * self.bytes)


@dataclass(frozen=True, slots=True, eq=False)
class CostTable:
    """A cost for every combination of the scope's values: seconds + multiplier * bytes, or bytes.

    Where equal bytes are ordered by seconds, the values are complex (see `LagrangianWeights.time_weight`).
    """

    scope: tuple[Variable, ...]
    values: Floats

    def at(self, chosen: Mapping[Variable, int], free: Variable) -> Floats:
        """Return the row over `free`, everything else as chosen."""
        index = tuple(slice(None) if v == free else chosen[v] for v in self.scope)
        return np.asarray(self.values[index])


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Variables with their numbers of values, and factors."""

    sizes: Mapping[Variable, int]
    factors: tuple[Factor, ...]

    def weighted(self, multiplier: float) -> list[CostTable]:
        """All factors as tables of seconds + multiplier * bytes."""
        return [factor.weighted(multiplier) for factor in self.factors]

    def bytes_only(self) -> list[CostTable]:
        """All factors as tables of bytes."""
        return [CostTable(f.scope, f.bytes) for f in self.factors if f.bytes is not None]

    def seconds_of(self, chosen: Mapping[Variable, int]) -> float:
        """Objective of an assignment."""
        return sum(float(f.seconds[f.index(chosen)]) for f in self.factors)

    def bytes_of(self, chosen: Mapping[Variable, int]) -> float:
        """Memory of an assignment."""
        return sum(float(f.bytes[f.index(chosen)]) for f in self.factors if f.bytes is not None)


def neighbours(scopes: Iterable[tuple[Variable, ...]]) -> dict[Variable, set[Variable]]:
    """Who shares a table with whom."""
    found: dict[Variable, set[Variable]] = {}
    for scope in scopes:
        for v in scope:
            found.setdefault(v, set()).update(scope)
    return {v: others - {v} for v, others in found.items()}
