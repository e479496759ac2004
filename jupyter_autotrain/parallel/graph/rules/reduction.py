"""Sums, means, extremes, softmax, sorting: sums and means may be split along the summed dims, nothing else may."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, nest, replicated


def linear_reduction(call: Call) -> Nest:
    """`out = sum over dims`: splitting a summed dim leaves a Partial output (a mean of equal parts is their mean)."""
    return _reduce(call, fixed=False)


def reduction(call: Call) -> Nest:
    """Any other reduction: the reduced dims stay whole."""
    return _reduce(call, fixed=True)


def _reduce(call: Call, *, fixed: bool) -> Nest:
    shape = call.inputs[0]
    out = call.outputs[0]
    rank = len(shape)
    subscripts = POOL[:rank]
    dims = call.dims("dim", rank) or tuple(range(rank))
    kept = "".join("" if d in dims else subscripts[d] for d in range(rank))
    wide = "".join("." if d in dims else subscripts[d] for d in range(rank))
    outputs = [wide if len(s) == rank else kept for s in call.outputs]
    if len(out) not in (len(kept), rank) or any(len(s) != len(out) for s in call.outputs):
        return replicated(call, Family.REDUCTION)
    rest = ["." * len(s) for s in call.inputs[1:]]
    return nest(
        call,
        Family.REDUCTION,
        [subscripts, *rest],
        outputs,
        fixed="".join(subscripts[d] for d in dims) if fixed else "",
    )


def along(call: Call) -> Nest:
    """Softmax, cumulative sums, sorting, top-k: the dim worked along stays whole, the others are independent."""
    rank = len(call.inputs[0])
    dims = call.dims("dim", rank, default=(-1,))
    subscripts = "".join("." if d in dims else POOL[d] for d in range(rank))
    if any(len(s) != rank for s in call.outputs):
        return replicated(call, Family.REDUCTION)
    rest = ["." * len(s) for s in call.inputs[1:]]
    return nest(call, Family.REDUCTION, [subscripts, *rest], [subscripts] * len(call.outputs))


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("sum", "mean", "nansum"), linear_reduction),
    **dict.fromkeys(
        [
            "amax",
            "amin",
            "max",
            "min",
            "argmax",
            "argmin",
            "var",
            "std",
            "var_mean",
            "prod",
            "any",
            "all",
            "norm",
            "linalg_vector_norm",
            "logsumexp",
        ],
        reduction,
    ),
    **dict.fromkeys(["rotary", "_softmax", "softmax", "cumsum", "cumprod", "sort", "topk", "logcumsumexp"], along),
}
