"""FLOPs and bytes of one dispatched op, from shapes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from jupyter_autotrain.parallel.trace.formulas import FORMULAS
from jupyter_autotrain.parallel.trace.internals import Passed

FACTORIES = frozenset(
    (
        *("new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided"),
        *("zeros_like", "ones_like", "full_like", "empty_like"),
    )
)
"""Make a tensor of the form of another, whatever that one holds."""
FREE = frozenset(
    (
        *("detach", "alias", "lift_fresh", "_unsafe_view", "_reshape_alias", "_local_scalar_dense", "device"),
        *("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"),
    )
)
"""Move no data."""
COMPLEX = 4
"""Real multiply-adds of a complex one."""
LOOKUPS = frozenset(["embedding", "_embedding_bag", "index", "index_select", "gather"])


def kind_of(func: torch._ops.OpOverload) -> str:
    """Short name of an op, without namespace, overload and in-place mark."""
    name = func.overloadpacket.__name__
    return str(name[:-1] if name.endswith("_") and not name.endswith("__") else name)


def flops(func: torch._ops.OpOverload, args: Sequence[Passed], kwargs: dict[str, Passed], out: object) -> float:
    """Floating point operations by torch's own formulas, and of what those leave out."""
    counted = flop_registry.get(func.overloadpacket)
    if counted is not None:
        is_complex = any(isinstance(value, torch.Tensor) and value.is_complex() for value in args)
        return float(counted(*args, **kwargs, out_val=out)) * (COMPLEX if is_complex else 1)
    formula = FORMULAS.get(kind_of(func))
    made = next(iter(tree_leaves(out)), None)
    return formula(args, made) if formula is not None and isinstance(made, torch.Tensor) else 0.0


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
