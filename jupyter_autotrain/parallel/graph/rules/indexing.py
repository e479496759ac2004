"""Gathers and scatters: the dim that is indexed stays whole, dims that only pass through may be split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, nest, replicated


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
    out = "".join(POOL[d] if d == dim or source[d] == index[d] else "." for d in range(len(source)))
    return nest(call, Family.RESHAPE, [out[:dim] + "." + out[dim + 1 :], out], [out])


def scatter(call: Call) -> Nest:
    """`out[index[i, j], j] += x[i, j]`: only dims that are not scattered may be split."""
    rank = len(call.outputs[0])
    (dim,) = call.dims("dim", rank, (0,))
    shapes = [shape for shape in (*call.inputs, *call.outputs) if len(shape) == rank]
    sizes = [set(column) for column in zip(*shapes, strict=True)]
    subscripts = "".join(POOL[d] if d != dim and len(sizes[d]) == 1 else "." for d in range(rank))
    operands = [subscripts if len(s) == rank else "." * len(s) for s in call.inputs]
    return nest(call, Family.RESHAPE, operands, [subscripts])


def advanced(call: Call) -> Nest:
    """`x[index]` with index tensors on the first dims: dims behind them pass through, index dims lead the output."""
    source = call.inputs[0]
    out = call.outputs[0]
    places = call.args.get("indices")
    given = [place is not None for place in places] if isinstance(places, Sequence) else []
    count = sum(given)
    if not count or not all(given[:count]) or len(call.inputs) != 1 + count:
        return replicated(call, Family.RESHAPE)
    passed = POOL[: len(source) - count]
    lead = POOL[len(passed) :][: len(out) - len(passed)]
    operands = [(lead if shape == out[: len(lead)] else "." * len(shape)) for shape in call.inputs[1:]]
    return nest(call, Family.RESHAPE, ["." * count + passed, *operands], [lead + passed])


RULES: Mapping[str, Rule] = {
    "index_select": index_select,
    "gather": gather,
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy"), scatter),
    "index": advanced,
}
