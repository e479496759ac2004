"""One file per family of ops; each says which loops of an op may be split. Torch-free.

Adding a rule: write a function from `Call` to `Nest` in the family's file and name the op kinds it serves in `RULES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jupyter_autotrain.parallel.graph.rules import convolution, indexing, products, reductions, views
from jupyter_autotrain.parallel.graph.rules.nest import Call, Nest, Rule, Shape, replicated

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **reductions.ELEMENTWISE_RULES,
        **views.RESHAPE_RULES,
        **views.STRIDES_RULES,
        **indexing.INDEXING_RULES,
        **reductions.REDUCTION_RULES,
        **reductions.LOSS_RULES,
        **reductions.NORM_RULES,
        **convolution.CONVOLUTION_RULES,
        **indexing.EMBEDDING_RULES,
        **convolution.RECURRENT_RULES,
        **convolution.FOURIER_RULES,
        **products.LINALG_RULES,
        **products.MOE_RULES,
        **products.ATTENTION_RULES,
        **products.MATMUL_RULES,
    }
)


def describe(call: Call) -> tuple[Nest, bool]:
    """Return the loop nest of a call, and whether there is a rule for it; an op without one is replicated.

    A call of an unforeseen form (a rank the rule cannot read) counts as unknown: nothing of it is split.
    """
    rule = RULES.get(call.kind) or (reductions.elementwise if call.pointwise else None)
    if rule is None:
        return replicated(call), False
    try:
        return rule(call), True
    except (ValueError, IndexError):
        return replicated(call), False


__all__ = ["RULES", "Call", "Nest", "Rule", "Shape", "describe"]
