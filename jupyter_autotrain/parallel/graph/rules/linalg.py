"""Decompositions and solutions of matrices, and products of three: batch dims may be split, a matrix may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, broadcast, nest


def matrices(call: Call) -> Nest:
    """`out[b] = f(a[b])` for matrices `a[b]`, batch dims broadcast."""
    shape = max(call.inputs, key=len)
    outer = shape[:-2]
    subscripts = POOL[: len(outer)]

    def named(other: tuple[int, ...]) -> str:
        front = broadcast(other[: len(outer)], outer, subscripts) if len(other) >= len(outer) else ""
        return front + "." * (len(other) - len(front))

    return nest(call, Family.LINALG, [named(s) for s in call.inputs], [named(s) for s in call.outputs])


def distances(call: Call) -> Nest:
    """`out[b, n, m] = |x[b, n, :] - y[b, m, :]|`."""
    out = call.outputs[0]
    outer = POOL[: len(out) - 2]
    first, second = (broadcast(shape[:-2], out[:-2], outer) for shape in call.inputs)
    return nest(call, Family.LINALG, [first + "nk", second + "mk"], [outer + "nm"], fixed="k")


def trilinear(call: Call) -> Nest:
    """`out[r, o] = sum over i and j of a[r, i] w[o, i, j] b[r, j]`, as `torch.bilinear` calls it.

    `expand1`, `expand2` and `expand3` name the dims of size 1 with which each operand is stretched.
    """
    stretched = [_dims_of(f"expand{place}", call) for place in (1, 2, 3)]
    letters = POOL[: len(call.inputs[0]) + len(stretched[0])]
    summed = call.dims("sumdim", len(letters))
    inputs = [_without(letters, dims) for dims in stretched]
    out = _without(letters, summed)
    return nest(call, Family.MATMUL, inputs, [out])


def _without(letters: str, places: Sequence[int]) -> str:
    """The letters that stand at none of the places."""
    return "".join(letter for place, letter in enumerate(letters) if place not in places)


def _dims_of(name: str, call: Call) -> tuple[int, ...]:
    given = call.args.get(name)
    return tuple(d for d in given if isinstance(d, int)) if isinstance(given, list | tuple) else ()


NAMES = """
linalg_cholesky_ex linalg_lu_factor_ex _linalg_det _linalg_slogdet linalg_inv_ex _linalg_solve_ex linalg_lu_solve
linalg_solve_triangular triangular_solve
"""
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(NAMES.split(), matrices),
    **dict.fromkeys(("_cdist_forward", "_euclidean_dist"), distances),
    "_trilinear": trilinear,
}
