"""Table lookups: rows of the table may be split (a device without the row gives zero, so the output is Partial)."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, nest


def embedding(call: Call) -> Nest:
    """`out[..., d] = weight[index[...], d]`."""
    rows = POOL[: len(call.inputs[1])]
    return nest(call, Family.EMBEDDING, ["vd", rows], [rows + "d"])


RULES: Mapping[str, Rule] = {"embedding": embedding}
