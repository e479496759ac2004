"""Fourier transforms: every dim that is not transformed may be split."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, nest


def transform(call: Call) -> Nest:
    """`out[..., k] = sum_n x[..., n] exp(-2 pi i k n / N)` over the dims named by `dim`."""
    rank = len(call.inputs[0])
    dims = call.dims("dim", rank, (rank - 1,))
    subscripts = "".join("." if d in dims else POOL[d] for d in range(rank))
    return nest(call, Family.FOURIER, [subscripts], [subscripts])


RULES: Mapping[str, Rule] = dict.fromkeys(("_fft_c2c", "_fft_r2c", "_fft_c2r"), transform)
