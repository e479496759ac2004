"""Attention as one op: batch and heads may be split; a row of scores may not."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, broadcast, nest, replicated


def attention(call: Call) -> Nest:
    """`out[b, h, s, w] = softmax(q[b, h, s, d] k[b, g, t, d]) v[b, g, t, w]`, mask broadcast over the scores.

    Query heads are a multiple of the key-value heads g; the head loop has g iterations, so that a split keeps each
    group of queries with its keys.
    """
    query, key = call.inputs[:2]
    if len(query) < 3 or len(key) != len(query):
        return replicated(call, Family.ATTENTION)
    outer = POOL[: len(query) - 3] + "h"
    operands = [outer + "sd", outer + "td", outer + "tw"]
    scores = (*query[:-1], key[-2])
    operands += [broadcast(shape, scores, outer + "st") for shape in call.inputs[3:]]
    out = call.outputs[0]
    extra = [(outer + "s" + "." * len(shape))[: len(shape)] for shape in call.outputs[1:]]
    return nest(call, Family.ATTENTION, operands, [(outer + "sw")[-len(out) :], *extra], fixed="sdtw")


RULES: Mapping[str, Rule] = dict.fromkeys(
    ("attention", "scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu"), attention
)
