"""What a tensor costs between two ops: the change of its layout and of its gradient's, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats, Ints
from jupyter_autotrain.parallel.cost.activations import GraphAnalysis
from jupyter_autotrain.parallel.cost.layout import Layouts, input_layouts, output_layouts
from jupyter_autotrain.parallel.cost.ops import OpPricer, OpTable
from jupyter_autotrain.parallel.cost.redistribution import Redistribution
from jupyter_autotrain.parallel.graph.graph import Op, Operand

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
        """The table of one edge."""
        tensor = target.operand.tensor
        forward, *others = (self.redistribution.seconds(*transfer) for transfer in self._transfers(source, target))
        backward = np.zeros_like(forward)
        if others:
            gradient, again = others
            # A gathered input is kept as a slice and gathered again behind the backward products, which it slows.
            backward = gradient.T + self.overlap_slowdown * again
        source_op = source.table.op
        target_op = target.table.op
        shares = self.analysis.edge_shares.get((tensor, target_op.id), _NOTHING_KEPT)
        before = self.op_pricer.shard_counts(source_op, source.operand, source.table.table)
        after = self.op_pricer.shard_counts(target_op, target.operand, target.table.table)
        slices = np.maximum(before[:, None], after[None, :])
        kept = np.multiply.outer(np.array(shares), self.op_pricer.tensor_bytes(tensor) / slices)
        return EdgeTable(tensor, source_op.id, target_op.id, forward, backward, kept)

    def _transfers(self, source: EdgeEnd, target: EdgeEnd) -> Iterator[Transfer]:
        """The tensor forward; where it has a gradient, that back, and the tensor gathered again."""
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
