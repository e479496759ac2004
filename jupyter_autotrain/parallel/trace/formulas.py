"""FLOPs and bytes of one dispatched op from shapes, and of the kinds that torch's own counter leaves out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log2, prod
from typing import TypeAlias

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from jupyter_autotrain.parallel.trace.internals import Passed

Formula: TypeAlias = Callable[[Sequence[Passed], torch.Tensor], float]
"""From arguments and first output to FLOPs."""


def grouped_product(args: Sequence[Passed], out: torch.Tensor) -> float:
    """Each row of tokens is multiplied with one expert's matrix."""
    return 2.0 * int(args[0].numel()) * (out if out.dim() == 2 else args[1]).shape[-1]


def transform(args: Sequence[Passed], out: torch.Tensor) -> float:
    """`5 N log2 N` for each Fourier transform of N complex points, half for real ones (Cooley and Tukey's count)."""
    x = args[0]
    dims = args[1]
    both = x.is_complex() and out.is_complex()
    points = x if not x.is_complex() else out
    length = prod(points.shape[d] for d in dims)
    whole = 5.0 * points.numel() * log2(max(length, 2))
    return whole if both else whole / 2


def _rows(args: Sequence[Passed]) -> tuple[int, int]:
    """Matrices times rows of each, and the rows of each."""
    matrix = args[0]
    return matrix.numel() // max(1, matrix.shape[-1]), int(matrix.shape[-1])


def triangle(args: Sequence[Passed], out: torch.Tensor) -> float:
    """`n^2 k` to solve a triangular system with k right sides (Golub and Van Loan, 3.1)."""
    return float(out.numel() * args[0].shape[-1])


def cholesky(args: Sequence[Passed], _out: torch.Tensor) -> float:
    """`n^3 / 3` (Golub and Van Loan, 4.2)."""
    rows, size = _rows(args)
    return rows * size**2 / 3


def factors(args: Sequence[Passed], _out: torch.Tensor) -> float:
    """`2 n^3 / 3` for an LU factorisation (Golub and Van Loan, 3.2)."""
    return 2 * cholesky(args, _out)


def inverse(args: Sequence[Passed], _out: torch.Tensor) -> float:
    """`2 n^3`: factors, and n right sides."""
    return 6 * cholesky(args, _out)


def solution(args: Sequence[Passed], out: torch.Tensor) -> float:
    """Factors, then two triangular systems."""
    return factors(args, out) + 2 * triangle(args, out)


def distances(args: Sequence[Passed], out: torch.Tensor) -> float:
    """Subtract, multiply and add for each feature of each pair."""
    return 3.0 * out.numel() * int(args[0].shape[-1])


def trilinear(args: Sequence[Passed], out: torch.Tensor) -> float:
    """Two multiply-adds for each weight and row."""
    return 4.0 * out.numel() * int(args[0].shape[-1]) * int(args[2].shape[-1])


FORMULAS: Mapping[str, Formula] = {
    **dict.fromkeys(("_fft_c2c", "_fft_r2c", "_fft_c2r"), transform),
    **dict.fromkeys(("_grouped_mm", "_scaled_grouped_mm", "grouped_mm"), grouped_product),
    **dict.fromkeys(("linalg_solve_triangular", "triangular_solve"), triangle),
    "linalg_cholesky_ex": cholesky,
    **dict.fromkeys(("linalg_lu_factor_ex", "_linalg_det", "_linalg_slogdet"), factors),
    "linalg_inv_ex": inverse,
    "_linalg_solve_ex": solution,
    "linalg_lu_solve": triangle,
    **dict.fromkeys(("_cdist_forward", "_euclidean_dist"), distances),
    "_trilinear": trilinear,
}
"""Short name of an op → its formula."""


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
