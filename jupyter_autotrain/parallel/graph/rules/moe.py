"""Experts of a mixture as one op: tokens, experts and the experts' inner width may be split.

Splitting the experts gives each device all tokens of its group and its own experts; what the experts of one token give
is summed, so the output is Partial. Work is taken as evenly routed.
"""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, nest, replicated


def experts(call: Call) -> Nest:
    """`out[t, d] = sum over e in chosen[t] of weight[t, e] * (f(x[t, d] first[e, ., d]) second[e, d, i])[d]`.

    Inputs: tokens (..., d), then per-token routing (..., k) in any number, then expert parameters (e, ...). The inner
    width i is split where a parameter's trailing dims distinguish it from d; where gate and up lie in one parameter, a
    part holds its share of both, as with the parts of a `split`.
    """
    tokens = call.inputs[0]
    experts_count = call.integer("experts", 0)
    if not experts_count:
        return replicated(call, Family.MOE)
    rows = POOL[: len(tokens) - 1]
    width = tokens[-1]
    operands = [rows + "."]
    for shape in call.inputs[1:]:
        if shape[:1] == (experts_count,):
            operands.append(_parameter(shape, width, call.integer("inner", 0)))
        else:
            operands.append(rows + "." if shape[:-1] == tokens[:-1] else "." * len(shape))
    return nest(call, Family.MOE, operands, [rows + "." if out == tokens else "." * len(out) for out in call.outputs])


def _parameter(shape: tuple[int, ...], width: int, inner: int) -> str:
    """Experts lead; a dim that is a multiple of the inner width and is not the tokens' runs along it."""
    subscripts = "e"
    used = False
    for size in shape[1:]:
        along = not used and inner > 1 and size % inner == 0 and (size != width or shape[1:].count(width) > 1)
        subscripts, used = subscripts + ("i" if along else "."), used or along
    return subscripts


def grouped_product(call: Call) -> Nest:
    """`out[t, n] = sum_k x[t, k] weight[expert of t, k, n]`, rows sorted by expert, so they split with the experts."""
    tokens, weight = call.inputs[:2]
    if len(tokens) != 2 or len(weight) != 3 or tokens[0] % weight[0]:
        return replicated(call, Family.MOE)
    rest = ["." * len(shape) for shape in call.inputs[2:]]
    return nest(call, Family.MOE, ["ek", "ekn", *rest], ["en"])


RULES: Mapping[str, Rule] = {"experts": experts, "_grouped_mm": grouped_product, "grouped_mm": grouped_product}
