"""What the recorder collects: one `TracedOp` per op of the forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_autotrain.parallel.graph.graph import TensorKind


@dataclass(frozen=True, slots=True)
class SeenTensor:
    """A tensor as first seen."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: TensorKind
    trainable: bool = False


@dataclass(slots=True)
class TracedOp:
    """One op of the forward pass and what its backward pass was seen to do.

    Attributes:
        kind: Short name of the op.
        name: Module path and short name.
        source: "file:line" of the call in the model's code.
        inputs: Positions in the list of seen tensors.
        outputs: The same.
        inner: Tensors made and used inside.
        args: Arguments that are no tensors, by name.
        pointwise: Whether the framework says that it works element by element.
        exact: Costs were given as a whole; what is dispatched inside does not count.
        saved: Storages kept for the backward pass → their bytes.
        unfused_extra_bytes: As of `Op`.
    """

    kind: str
    name: str
    source: str
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)
    args: Mapping[str, object] = field(default_factory=dict)
    pointwise: bool = False
    exact: bool = False
    flops_forward: float = 0.0
    flops_backward: float = 0.0
    bytes_forward: float = 0.0
    bytes_backward: float = 0.0
    saved: dict[int, int] = field(default_factory=dict)
    unfused_extra_bytes: int = 0

    def cost(self, flops: float, moved: float, *, backward: bool) -> None:
        """Add what one dispatched op costs, unless the costs were given as a whole."""
        if self.exact:
            return
        if backward:
            self.flops_backward += flops
            self.bytes_backward += moved
        else:
            self.flops_forward += flops
            self.bytes_forward += moved
