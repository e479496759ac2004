"""Ops that look up by index, embeddings among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, alike, dots, letters, nest, replicated


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
    fixed = "v" if call.args.get("mode") == "max" else ""
    return nest(call, Family.EMBEDDING, ["vd", *rest], ["bd", *dots(call.outputs[1:])], fixed=fixed)


def _of_bags(rank: int, *, flat: bool) -> str:
    return "." * rank if flat else "b."[:rank]


EMBEDDING_RULES: Mapping[str, Rule] = {"embedding": embedding, "embedding_bag": bags}


def index_select(call: Call) -> Nest:
    """`out[..., j, ...] = x[..., index[j], ...]`."""
    rank = len(call.inputs[0])
    (dim,) = call.dims("dim", rank, (0,))
    subscripts = POOL[:rank]
    source = subscripts[:dim] + "." + subscripts[dim + 1 :]
    return nest(call, Family.RESHAPE, [source, subscripts[dim]], [subscripts])


def gather(call: Call) -> Nest:
    """`out[i, j] = x[i, index[i, j]]`: the indexed dim of x stays whole."""
    source, index = call.inputs[:2]
    (dim,) = call.dims("dim", len(source), (0,))
    uneven = np.flatnonzero(np.not_equal(source, index)).tolist()
    out = letters(len(source), {*uneven} - {dim})
    return nest(call, Family.RESHAPE, [out[:dim] + "." + out[dim + 1 :], out], [out])


def scatter(call: Call) -> Nest:
    """`out[index[i, j], j] += x[i, j]`: only dims that are not scattered may be split."""
    rank = len(call.outputs[0])
    (dim,) = call.dims("dim", rank, (0,))
    shapes = np.array([shape for shape in (*call.inputs, *call.outputs) if len(shape) == rank])
    uneven = np.flatnonzero((shapes != shapes[0]).any(axis=0)).tolist()
    subscripts = letters(rank, {dim, *uneven})
    return nest(call, Family.RESHAPE, alike(subscripts, call.inputs), [subscripts])


def advanced(call: Call) -> Nest:
    """`x[index]` with index tensors on the first dims: dims behind them pass through, index dims lead the output."""
    source = call.inputs[0]
    out = call.outputs[0]
    places = call.args.get("indices")
    given = list(places) if isinstance(places, Sequence) else []
    count = len(given) - given.count(None)
    if not count or None in given[:count] or len(call.inputs) != 1 + count:
        return replicated(call, Family.RESHAPE)
    passed = POOL[: len(source) - count]
    lead = POOL[len(passed) :][: len(out) - len(passed)]
    operands = [(lead if shape == out[: len(lead)] else "." * len(shape)) for shape in call.inputs[1:]]
    return nest(call, Family.RESHAPE, ["." * count + passed, *operands], [lead + passed])


INDEXING_RULES: Mapping[str, Rule] = {
    "index_select": index_select,
    "gather": gather,
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy"), scatter),
    "index": advanced,
}
