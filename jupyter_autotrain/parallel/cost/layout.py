"""Strategies of an op on a mesh, and where they put its tensors.

A strategy names one loop of the op (or none) per mesh axis. Everything else follows from the loop nest; tables hold
one row per strategy and one column per axis. Codes in a table: a tensor dim >= 0 (Shard), `REPLICATE` or `PARTIAL`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from jupyter_autotrain.parallel.cost.collectives import Axis, Floats, all_reduce_s, all_to_all_s, gather_s
from jupyter_autotrain.parallel.graph.graph import Op, Operand
from jupyter_autotrain.parallel.placement import Partial, Placement, Placements, Replicate, Shard

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

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
    for loop in open_loops:
        split = np.where(table == loop, sizes, 1).prod(axis=1)
        fits &= loop_sizes[loop] % split == 0
    return table[fits]


def _dims(op: Op, operand: Operand, missing: int) -> Ints:
    """Loop index (last entry: none) → the dim of `operand` that runs along it, or `missing`."""
    dims = np.full(len(op.loops) + 1, missing, dtype=np.int64)
    dims[-1] = REPLICATE
    for dim, loop in enumerate(operand.loops):
        if loop is not None:
            dims[loop] = dim
    return dims


def needed(op: Op, operand: Operand, table: Ints) -> Ints:
    """How `op` needs an input to lie: split along its loops, whole elsewhere."""
    return _dims(op, operand, REPLICATE)[table]


def produced(op: Op, operand: Operand, table: Ints) -> Ints:
    """How an output lies, and also the gradient of an input: Partial over split loops that it lacks."""
    return _dims(op, operand, PARTIAL)[table]


def split_of(placed: Ints, axes: tuple[Axis, ...]) -> Ints:
    """Number of slices that each placement row cuts a tensor into."""
    sizes = np.array([axis.size for axis in axes], dtype=np.int64)
    return np.asarray(np.multiply.reduce(np.where(placed >= 0, sizes, 1), axis=1))


def as_placements(row: Ints) -> Placements:
    """A row of codes in words."""
    words: dict[int, Placement] = {REPLICATE: Replicate(), PARTIAL: Partial()}
    return tuple(words.get(code) or Shard(code) for code in row.tolist())


@dataclass(frozen=True, eq=False)
class Layouts:
    """Placements of a tensor, one per strategy: each different one once, and which one a strategy has."""

    different: Ints
    which: Ints

    @classmethod
    def of(cls, placed: Ints) -> Layouts:
        """From rows of codes; on so few rows a dict beats sorting."""
        place: dict[tuple[int, ...], int] = {}
        which = [place.setdefault(tuple(row), len(place)) for row in placed.tolist()]
        return cls(np.array(list(place), dtype=np.int64), np.array(which, dtype=np.int64))

    @cached_property
    def key(self) -> bytes:
        """The different placements, to look tables up by."""
        return self.different.tobytes()

    @cached_property
    def reduced(self) -> Layouts:
        """The same with all partial sums made whole."""
        if not (self.different == PARTIAL).any():
            return self
        return Layouts(np.where(self.different == PARTIAL, REPLICATE, self.different), self.which)


Asked = tuple[Layouts, Layouts, float]


class Redistribution:
    """Seconds to move a tensor from each of some placements to each of some others, on one mesh.

    DTensor's moves: S→R all-gather, P→R all-reduce, P→S reduce-scatter, S(a)→S(b) all-to-all, R→S a free slice. Axes
    move one after the other, those that shrink the tensor first and gathers last, so that every collective works on
    as few bytes as it can.
    """

    def __init__(self, axes: tuple[Axis, ...]) -> None:
        self._axes = axes
        self._known: dict[tuple[float, bytes, bytes], Floats] = {}

    def seconds(self, source: Layouts, target: Layouts, size_bytes: float) -> Floats:
        """Time table (sources, targets) for a tensor of `size_bytes` in full."""
        key = (size_bytes, source.key, target.key)
        if key not in self._known:
            self.prepare([(source, target, size_bytes)])
        return self._known[key][source.which[:, None], target.which[None, :]]

    def prepare(self, asked: Iterable[Asked]) -> None:
        """Work out several tables in one go, for `seconds` to find."""
        by_key = {(size, source.key, target.key): (source, target, size) for source, target, size in asked}
        missing = {key: one for key, one in by_key.items() if key not in self._known}
        if missing:
            self._known.update(zip(missing, self._tables(list(missing.values())), strict=True))

    def _tables(self, asked: Sequence[Asked]) -> list[Floats]:
        """All pairs of all tables one below the other."""
        shapes = [(len(source.different), len(target.different)) for source, target, _ in asked]
        lengths = [rows * columns for rows, columns in shapes]
        now = np.concatenate([s.different.repeat(len(t.different), axis=0) for s, t, _ in asked])
        goal = np.concatenate([np.tile(t.different, (len(s.different), 1)) for s, t, _ in asked])
        held = np.repeat([size for _, _, size in asked], lengths) / split_of(now, self._axes)
        seconds = np.zeros(len(held))
        for move in _MOVES:
            for index, axis in enumerate(self._axes):
                moved = move.where(now[:, index], goal[:, index])
                if move.cost and len(moved):
                    seconds[moved] += move.cost(axis, held[moved] * axis.size if move.from_split else held[moved])
                if move.held and len(moved):
                    held[moved] *= move.held(axis.size)
        parts = np.split(seconds, np.cumsum(lengths)[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


@dataclass(frozen=True, slots=True)
class _Move:
    """One of DTensor's moves along one axis.

    Attributes:
        before: The placement that it starts from: a dim (0 stands for any), `REPLICATE` or `PARTIAL`.
        after: The placement that it leads to, likewise.
        cost: Seconds by the bytes that the axis holds together; None when free.
        held: Factor by which the bytes on a device grow; None when they stay.
    """

    before: int
    after: int
    cost: Callable[[Axis, Floats], Floats] | None = None
    held: Callable[[int], float] | None = None

    @property
    def from_split(self) -> bool:
        """Whether the axis splits the tensor before."""
        return self.before >= 0

    def where(self, now: Ints, goal: Ints) -> Ints:
        """Which pairs of codes along one axis need this move."""
        start = now >= 0 if self.before == 0 else now == self.before
        stop = goal >= 0 if self.after == 0 else goal == self.after
        pairs = start & stop & (now != goal) if self.before == self.after else start & stop
        return np.flatnonzero(pairs)


_MOVES = (
    _Move(REPLICATE, 0, held=lambda size: 1.0 / size),
    _Move(PARTIAL, 0, gather_s, lambda size: 1.0 / size),
    _Move(0, 0, lambda axis, n: all_to_all_s(axis, n / axis.size)),
    _Move(PARTIAL, REPLICATE, all_reduce_s),
    _Move(0, REPLICATE, gather_s, lambda size: size),
)
