"""Changes of layout: what they take on each axis, and the tables of all edges between ops.

Seconds to change the layout of a tensor. DTensor's changes of placement: S→R all-gather, P→R all-reduce, P→S
reduce-scatter, S(a)→S(b) all-to-all, R→S a free slice. Axes change one after the other, those that shrink the tensor
first and gathers last, so that every collective works on as few bytes as it can. Along one axis only the kind of
change matters, not which dim it is of: the time of every combination of kinds is worked out once per size of tensor,
and a table of placements by placements is looked up in those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from jupyter_autotrain.parallel.arrays import Floats, Ints
from jupyter_autotrain.parallel.cost.activations import GraphAnalysis
from jupyter_autotrain.parallel.cost.collectives import Axis, all_reduce_s, all_to_all_s, gather_s
from jupyter_autotrain.parallel.cost.exchange import Exchange
from jupyter_autotrain.parallel.cost.layout import (
    PARTIAL,
    REPLICATE,
    Layouts,
    input_layouts,
    output_layouts,
    shard_counts,
)
from jupyter_autotrain.parallel.cost.ops import OpPricer, OpTable
from jupyter_autotrain.parallel.cost.states import Assumptions
from jupyter_autotrain.parallel.graph.graph import Op, Operand


class Redistribution:
    """Times on one mesh, of tensors that lie along its axes."""

    def __init__(
        self, axes: tuple[Axis, ...], assumptions: Assumptions, seconds: dict[float, Floats] | None = None
    ) -> None:
        """On these axes; `seconds` is where times are kept by size, see `table_cache.ModelTables`."""
        self._axes = axes
        self._assumptions = assumptions
        self._seconds = {} if seconds is None else seconds

    def seconds(self, source: Layouts, target: Layouts, size_bytes: float) -> Floats:
        """Time table (sources, targets) for a tensor of `size_bytes` in full."""
        self.prepare([size_bytes])
        kinds = _kinds(source.key, target.key, len(self._axes))
        return target.expand(source.expand(self._seconds[size_bytes][kinds], 0), 1)

    def prepare(self, sizes_bytes: Iterable[float]) -> None:
        """Work out the times of several sizes in one go, for `seconds` to look up."""
        missing = [size for size in dict.fromkeys(sizes_bytes) if size not in self._seconds]
        if missing:
            self._seconds.update(zip(missing, self._all_kinds(np.array(missing)), strict=True))

    def _all_kinds(self, sizes_bytes: Floats) -> Floats:
        """(sizes, combinations) seconds of every combination of kinds, the last axis fastest."""
        now, goal = _combinations(len(self._axes))
        held = np.divide.outer(sizes_bytes, shard_counts(now, self._axes))
        seconds = np.zeros_like(held)
        for transition in _TRANSITIONS:
            for index, axis in enumerate(self._axes):
                at = transition.where(now[:, index], goal[:, index])
                if transition.cost:
                    together = held[:, at] * axis.size if transition.from_split else held[:, at]
                    seconds[:, at] += self._cost_s(transition, axis, together)
                if transition.held:
                    held[:, at] *= transition.held(axis.size)
        return seconds

    def _cost_s(self, transition: _Transition, axis: Axis, together: Floats) -> Floats:
        if axis.size == 1 or transition.cost is None:
            return np.zeros_like(together)
        moving = self._assumptions.moving
        factor = self._assumptions.scatter if transition.is_scatter else 1.0
        return factor * transition.cost(axis, together) + moving.start_s + moving.s_per_byte * together

    def exchange_s(self, exchange: Exchange, table: Ints, local_bytes: Floats) -> Floats:
        """Seconds by strategy that a pass of a mixture's tokens takes, of which a rank has `local_bytes`."""
        fullest = self._assumptions.imbalance * local_bytes
        return exchange.seconds(table, self._axes, fullest, self._assumptions.moving)


# What may happen along one axis, as codes before and after: nothing, to a whole tensor or to a slice; or a transition.
_KINDS = ((REPLICATE, REPLICATE), (0, 0), (REPLICATE, 0), (PARTIAL, 0), (0, 1), (PARTIAL, REPLICATE), (0, REPLICATE))


@lru_cache(maxsize=8)
def _combinations(axes: int) -> tuple[Ints, Ints]:
    """Return (combinations, axes) codes before and after."""
    both = np.array(list(product(_KINDS, repeat=axes)), dtype=np.int64).reshape(len(_KINDS) ** axes, axes, 2)
    return both[:, :, 0], both[:, :, 1]


@lru_cache(maxsize=512)
def _kinds(source: bytes, target: bytes, axes: int) -> NDArray[np.int32]:
    """Return (sources, targets) combination of kinds that leads from one row of codes to another."""
    shape = (-1, axes) if axes else (1, 0)
    before, after = (np.frombuffer(codes, dtype=np.int64).reshape(shape) for codes in (source, target))
    found = np.zeros((len(before), len(after)), dtype=np.int32)
    for axis in range(axes):
        found = found * len(_KINDS) + _kind(before[:, None, axis], after[None, :, axis])
    return found


def _kind(now: Ints, goal: Ints) -> NDArray[np.int32]:
    """Index in `_KINDS`; what stays partial stays as it is."""
    to_slice = np.where(now >= 0, np.where(now == goal, 1, 4), np.where(now == PARTIAL, 3, 2))
    to_whole = np.where(now >= 0, 6, np.where(now == PARTIAL, 5, 0))
    return np.where(goal >= 0, to_slice, np.where(goal == PARTIAL, 0, to_whole)).astype(np.int32)


@dataclass(frozen=True, slots=True)
class _Transition:
    """One of DTensor's changes of placement along one axis.

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
    def is_scatter(self) -> bool:
        """True for a reduce-scatter."""
        return self.before == PARTIAL and self.after >= 0

    @property
    def from_split(self) -> bool:
        """True where the axis splits the tensor before."""
        return self.before >= 0

    def where(self, now: Ints, goal: Ints) -> Ints:
        """Which pairs of codes along one axis need this transition."""
        start = now >= 0 if self.before == 0 else now == self.before
        stop = goal >= 0 if self.after == 0 else goal == self.after
        pairs = start & stop & (now != goal) if self.before == self.after else start & stop
        return np.flatnonzero(pairs)


_TRANSITIONS = (
    _Transition(REPLICATE, 0, held=lambda size: 1.0 / size),
    _Transition(PARTIAL, 0, gather_s, lambda size: 1.0 / size),
    _Transition(0, 0, lambda axis, n: all_to_all_s(axis, n / axis.size)),
    _Transition(PARTIAL, REPLICATE, all_reduce_s),
    _Transition(0, REPLICATE, gather_s, lambda size: size),
)


LayoutKey = tuple[int, tuple[int | None, ...], bool]  # op, loops of the operand, whether it is produced
Transfer = tuple[Layouts, Layouts, float]  # source layouts, target layouts, bytes of the whole tensor
_NOTHING_KEPT = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class EdgeTable:
    """One tensor from `source` to `target`; arrays are (source strategies, target strategies).

    `forward_s` and `backward_s` change the layout of the tensor and of its gradient; `act_bytes` has a leading
    dimension for the recompute modes.
    """

    tensor: int
    source: int
    target: int
    forward_s: Floats
    backward_s: Floats
    act_bytes: Floats


@dataclass(frozen=True, slots=True)
class EdgeEnd:
    """One end of an edge: the op's table, the operand that is passed on, and the first op that costs the same."""

    table: OpTable
    operand: Operand
    representative: int


@dataclass(eq=False, slots=True)
class EdgePricer:
    """Prices edges on one mesh.

    Attributes:
        analysis: Of the graph.
        op_pricer: Prices the ops at both ends.
        redistribution: Changes of layout on the mesh.
        overlap_slowdown: As of `states.Assumptions`.
        layouts: Where layouts are kept, see `table_cache.ModelTables`.
    """

    analysis: GraphAnalysis
    op_pricer: OpPricer
    redistribution: Redistribution
    overlap_slowdown: float
    layouts: dict[LayoutKey, Layouts]

    def table(self, source: EdgeEnd, target: EdgeEnd) -> EdgeTable:
        """Return the table of one edge."""
        tensor = target.operand.tensor
        together = self.analysis.moved_together.get((tensor, target.table.op.id), 1)
        transfers = self._transfers(source, target)
        forward, *others = (self.redistribution.seconds(*transfer) / together for transfer in transfers)
        backward = np.zeros_like(forward)
        if others:
            gradient, again = others
            # A gathered input is kept as a slice and gathered again behind the backward products, which it slows.
            backward = gradient.T + self.overlap_slowdown * again
        exchange_s = self._exchange_s(target)
        source_op = source.table.op
        target_op = target.table.op
        shares = self.analysis.edge_shares.get((tensor, target_op.id), _NOTHING_KEPT)
        before = self.op_pricer.shard_counts(source_op, source.operand, source.table.table)
        after = self.op_pricer.shard_counts(target_op, target.operand, target.table.table)
        slices = np.maximum(before[:, None], after[None, :])
        kept = np.multiply.outer(np.array(shares), self.op_pricer.tensor_bytes(tensor) / slices)
        return EdgeTable(tensor, source_op.id, target_op.id, forward + exchange_s, backward + exchange_s, kept)

    def _exchange_s(self, target: EdgeEnd) -> Floats | float:
        """Seconds by strategy of the target that its experts take to get these tokens, or to give back gradients."""
        op = target.table.op
        exchange = Exchange.of(self.op_pricer.graph, op)
        if exchange is None or exchange.tensor != target.operand.tensor:
            return 0.0
        local = self.op_pricer.local_bytes(op, target.operand, target.table.table)
        return self.redistribution.exchange_s(exchange, target.table.table, local)

    def _transfers(self, source: EdgeEnd, target: EdgeEnd) -> Iterator[Transfer]:
        """Yield the tensor forward; where it has a gradient, that back, and the tensor gathered again."""
        tensor = target.operand.tensor
        size = self.op_pricer.tensor_bytes(tensor)
        left = self._layouts(source, output_layouts)
        wanted = self._layouts(target, input_layouts)
        yield left, wanted, size
        if tensor in self.analysis.differentiable:
            yield self._layouts(target, output_layouts), left.reduced, size
            yield left.reduced, wanted, size

    def _layouts(self, end: EdgeEnd, placed: Callable[[Op, Operand, Ints], Ints]) -> Layouts:
        key = (end.representative, end.operand.loops, placed is output_layouts)
        if key not in self.layouts:
            self.layouts[key] = Layouts.of(placed(end.table.op, end.operand, end.table.table))
        return self.layouts[key]
