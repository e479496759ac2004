"""FLOPs and bytes of one dispatched op, from shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

FREE = frozenset(
    "detach alias lift_fresh _unsafe_view empty_like new_empty empty new_empty_strided empty_strided "
    "_reshape_alias _local_scalar_dense device".split()
)  # fmt: skip
FACTORIES = frozenset(
    "new_zeros new_ones new_full new_empty new_empty_strided zeros_like ones_like full_like empty_like".split()
)
"""Make a tensor of the form of another, whatever that one holds."""
LOOKUPS = frozenset("embedding index index_select gather".split())


def kind_of(func: torch._ops.OpOverload) -> str:
    """Short name of an op, without namespace, overload and in-place mark."""
    name = func.overloadpacket.__name__
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def flops(func: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any], out: object) -> float:
    """Floating point operations by torch's own formulas, and of grouped products, which those leave out."""
    formula = flop_registry.get(func.overloadpacket)
    if formula is not None:
        return float(formula(*args, **kwargs, out_val=out))
    if "grouped_mm" in func.overloadpacket.__name__ and isinstance(out, torch.Tensor):
        return 2.0 * args[0].numel() * out.shape[-1] if out.dim() == 2 else 2.0 * args[0].numel() * args[1].shape[-1]
    return 0.0


def moved_bytes(func: torch._ops.OpOverload, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> float:
    """Bytes read and written; views are free, a lookup reads only what it returns."""
    kind = kind_of(func)
    if kind in FREE or func.is_view:
        return 0.0
    written = sum(map(held_bytes, outputs))
    read = {id(t): held_bytes(t) for t in (inputs[1:] if kind in LOOKUPS else inputs)}
    return float(written + sum(read.values()) + (written if kind in LOOKUPS else 0))


def held_bytes(tensor: torch.Tensor) -> int:
    """Bytes of a tensor; what broadcasting repeats counts once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride or size == 0 else 1
    return count * tensor.element_size()
