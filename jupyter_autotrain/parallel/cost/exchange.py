"""Experts of a mixture on several ranks: what their exchange of tokens takes.

A token's row travels to each expert that the router has chosen for it, and what that makes travels back: two
all-to-alls in the forward pass and two in the backward pass (Lepikhin et al. 2020, GShard), each of all rows of a rank.
Numbers of rows go before them. No row is dropped, so that the rank with the fullest experts gets `imbalance` times the
mean, which all others wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats, Ints
from jupyter_autotrain.parallel.cost.collectives import AlphaBeta, Axis, all_to_all_s
from jupyter_autotrain.parallel.cost.layout import exchanged
from jupyter_autotrain.parallel.graph.graph import Op, OpGraph, TensorKind

DIRECTIONS = 2  # there and back


@dataclass(frozen=True, slots=True)
class Exchange:
    """The exchange of a mixture.

    Attributes:
        tensor: Id of the tokens' tensor.
        experts: The loop of the experts.
        rows: Rows that each token is sent as: the experts that are chosen for it.
    """

    tensor: int
    experts: int
    rows: int

    @classmethod
    def of(cls, graph: OpGraph, op: Op) -> Exchange | None:
        """Return an op's exchange; None where its experts, if any, lie on one rank each time."""
        loops = exchanged(op)
        if not loops:
            return None
        given = [graph.tensors[x.tensor] for x in op.inputs]
        read = [tensor for tensor in given if tensor.kind is not TensorKind.PARAMETER]
        tokens = max(read, key=lambda tensor: tensor.numel)
        chosen = [tensor.shape[-1] for tensor in read if tensor.dtype.startswith("int") and tensor.shape]
        return cls(tokens.id, next(iter(loops)), min(chosen, default=1))

    def seconds(self, table: Ints, axes: tuple[Axis, ...], local_bytes: Floats, around: AlphaBeta) -> Floats:
        """Seconds of one pass by strategy, of tokens of `local_bytes` on a rank; `around`: beside each collective."""
        total = np.zeros(len(table))
        sent = self.rows * local_bytes
        for index, axis in enumerate(axes):
            once = all_to_all_s(axis, sent) + around.start_s + around.s_per_byte * sent
            total += np.where(table[:, index] == self.experts, DIRECTIONS * once, 0.0)
        return total
