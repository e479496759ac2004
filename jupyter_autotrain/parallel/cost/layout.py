"""Strategies of an op on a mesh, and where they put its tensors, in the terms of torch's DTensor.

A strategy names one loop of the op (or none) per mesh axis. Everything else follows from the loop nest; tables hold
one row per strategy and one column per axis. Codes in a table: a tensor dim >= 0 (Shard), `REPLICATE` or `PARTIAL`.
An axis that splits the experts of a mixture leaves each rank tokens of its own: what has no experts lies as if the axis
split samples (`exchanged`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import ClassVar, TypeAlias

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats, Ints
from jupyter_autotrain.parallel.cost.collectives import Axis
from jupyter_autotrain.parallel.graph.graph import Family, LoopRole, Op, Operand


@dataclass(frozen=True, slots=True)
class Shard:
    """Each device of the axis holds an equal slice along tensor dim `dim`."""

    KIND: ClassVar[str] = "shard"
    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, slots=True)
class Replicate:
    """Each device of the axis holds the whole tensor."""

    KIND: ClassVar[str] = "replicate"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, slots=True)
class Partial:
    """Each device of the axis holds a summand; the tensor is their sum."""

    KIND: ClassVar[str] = "partial"

    def __str__(self) -> str:
        return "P"


Placement: TypeAlias = Shard | Replicate | Partial
Placements: TypeAlias = tuple[Placement, ...]  # one per mesh axis, in the mesh's order


NONE = -1
REPLICATE = -1
PARTIAL = -2


@cache
def _all_rows(options: int, axes: int) -> Ints:
    """Every way to give each axis one of `options` loops or none; the all-none row first."""
    rows = list(product(range(-1, options), repeat=axes))
    return np.array(rows, dtype=np.int64).reshape(len(rows), axes)


def strategies(op: Op, loop_sizes: tuple[int, ...], shape: tuple[int, ...]) -> Ints:
    """All strategies of `op` on a mesh of `shape`: axes on one loop must divide it together.

    Args:
        op: The op.
        loop_sizes: Sizes of its loops in one microbatch.
        shape: Sizes of the mesh axes.

    Returns:
        (strategies, axes) table of loop indices, `NONE` where the op is not split.
    """
    open_loops = [i for i, loop in enumerate(op.loops) if loop.shardable and loop_sizes[i] > 1]
    rows = _all_rows(len(open_loops), len(shape))
    names = np.array([*open_loops, NONE], dtype=np.int64)
    table = names[rows]
    fits = np.ones(len(table), dtype=bool)
    sizes = np.array(shape, dtype=np.int64)
    rows_of = exchanged(op)
    for loop in open_loops:
        along = table == loop
        for experts, samples in rows_of.items():
            along = along | (table == experts) if samples == loop else along
        split = np.where(along, sizes, 1).prod(axis=1)
        fits &= loop_sizes[loop] % split == 0
    return table[fits]


def exchanged(op: Op) -> dict[int, int]:
    """Return the loop of experts of a mixture, with that of the samples whose tokens ranks exchange to reach them."""
    if op.family is not Family.MOE:
        return {}
    first = {loop.role: i for i, loop in reversed(list(enumerate(op.loops))) if loop.shardable}
    if LoopRole.EXPERT not in first or LoopRole.BATCH not in first:
        return {}
    return {first[LoopRole.EXPERT]: first[LoopRole.BATCH]}


def _dims(op: Op, operand: Operand, missing: int) -> Ints:
    """Loop index (last entry: none) → the dim of `operand` that runs along it, or `missing`."""
    dims = np.full(len(op.loops) + 1, missing, dtype=np.int64)
    dims[-1] = REPLICATE
    for dim, loop in enumerate(operand.loops):
        if loop is not None:
            dims[loop] = dim
    for experts, samples in exchanged(op).items():
        if experts not in operand.loops:
            dims[experts] = dims[samples]
    return dims


def input_layouts(op: Op, operand: Operand, table: Ints) -> Ints:
    """Return how `op` needs an input to lie: split along its loops, whole elsewhere."""
    return _dims(op, operand, REPLICATE)[table]


def output_layouts(op: Op, operand: Operand, table: Ints) -> Ints:
    """Return how an output lies, and also the gradient of an input: Partial over split loops that it lacks."""
    return _dims(op, operand, PARTIAL)[table]


def shard_counts(placed: Ints, axes: tuple[Axis, ...]) -> Ints:
    """Return number of shards of a tensor under each row of placements."""
    sizes = np.array([axis.size for axis in axes], dtype=np.int64)
    return np.asarray(np.multiply.reduce(np.where(placed >= 0, sizes, 1), axis=1))


def as_placements(row: Ints) -> Placements:
    """Return a row of codes in words."""
    words: dict[int, Placement] = {REPLICATE: Replicate(), PARTIAL: Partial()}
    return tuple(words.get(code) or Shard(code) for code in row.tolist())


@dataclass(frozen=True, eq=False, slots=True)
class Layouts:
    """Placements of a tensor, one per strategy: each different one once, and which one a strategy has.

    Attributes:
        unique: (placements, axes) codes.
        inverse: Row of `unique`, by strategy.
        key: `unique` as bytes, to look tables up by.
        without_partial: The same with all partial sums made whole; None where there are none.
    """

    unique: Ints
    inverse: Ints
    key: bytes
    without_partial: Layouts | None = None

    @classmethod
    def of(cls, placed: Ints) -> Layouts:
        """From rows of codes; meshes with as many axes have most of them in common."""
        return _layouts_of(placed.tobytes(), placed.shape)

    def expand(self, table: Floats, axis: int) -> Floats:
        """From one entry per different placement to one per strategy, along an axis."""
        return table if len(self.inverse) == len(self.unique) else table.take(self.inverse, axis=axis)

    @property
    def reduced(self) -> Layouts:
        """The same with all partial sums made whole."""
        return self.without_partial or self


@lru_cache(maxsize=1024)
def _layouts_of(codes: bytes, shape: tuple[int, int]) -> Layouts:
    """On so few rows a dict beats sorting."""
    place: dict[tuple[int, ...], int] = {}
    rows = np.frombuffer(codes, dtype=np.int64).reshape(shape).tolist()
    inverse = np.array([place.setdefault(tuple(row), len(place)) for row in rows], dtype=np.int64)
    unique = np.array(list(place), dtype=np.int64)
    without_partial = None
    if (unique == PARTIAL).any():
        whole = np.where(unique == PARTIAL, REPLICATE, unique)
        without_partial = Layouts(whole, inverse, whole.tobytes())
    return Layouts(unique, inverse, unique.tobytes(), without_partial)
