"""Table lookups: rows of the table may be split (a device without the row gives zero, so the output is Partial)."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, nest


def embedding(call: Call) -> Nest:
    """`out[..., d] = weight[index[...], d]`."""
    rows = POOL[: len(call.inputs[1])]
    return nest(call, Family.EMBEDDING, ["vd", rows], [rows + "d"])


def bags(call: Call) -> Nest:
    """`out[b, d] = sum (or mean, or max) over i of weight[index[b, i], d]`.

    Inputs: the table, the indices, then offsets or weights per sample. Indices in rows (bags, most) split with the
    bags; flat ones, cut by offsets, are whole everywhere, and each device looks up those of its bags. Rows of the table
    are split for sums and means alone: the greatest of parts is no sum.
    """
    flat = len(call.inputs[1]) == 1
    rest = [_of_bags(len(shape), flat=flat) for shape in call.inputs[1:]]
    others = ["." * len(shape) for shape in call.outputs[1:]]
    fixed = "v" if call.args.get("mode") == "max" else ""
    return nest(call, Family.EMBEDDING, ["vd", *rest], ["bd", *others], fixed=fixed)


def _of_bags(rank: int, *, flat: bool) -> str:
    return "." * rank if flat else "b."[:rank]


RULES: Mapping[str, Rule] = {"embedding": embedding, "embedding_bag": bags}
