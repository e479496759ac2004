"""Views and copies that move elements: which dims keep their meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, Shape, broadcast, nest, replicated


def view(call: Call) -> Nest:
    """A view: dims fall into groups of equal products; the leading dims of a group's two sides run along one loop."""
    shape = call.inputs[0]
    out = call.outputs[0]
    if 0 in (*shape, *out):
        return replicated(call, Family.RESHAPE)
    in_subscripts = ["."] * len(shape)
    out_subscripts = ["."] * len(out)
    for letter, (left, right) in zip(POOL, view_groups(shape, out), strict=False):
        first_in = next((d for d in left if shape[d] > 1), None)
        first_out = next((d for d in right if out[d] > 1), None)
        if first_in is not None and first_out is not None and gcd(shape[first_in], out[first_out]) > 1:
            in_subscripts[first_in] = out_subscripts[first_out] = letter
    return nest(call, Family.RESHAPE, ["".join(in_subscripts)], ["".join(out_subscripts)])


def view_groups(shape: Shape, out: Shape) -> Iterator[tuple[list[int], list[int]]]:
    """Smallest groups of neighbouring dims whose products agree on both sides of a view."""
    i = j = 0
    while i < len(shape) or j < len(out):
        left: list[int] = []
        right: list[int] = []
        a = b = 1
        while (a != b or not left or not right) and (i < len(shape) or j < len(out)):
            if j >= len(out) or (i < len(shape) and a <= b):
                left, a, i = [*left, i], a * shape[i], i + 1
            else:
                right, b, j = [*right, j], b * out[j], j + 1
        yield left, right


def permute(call: Call) -> Nest:
    """Dims change places."""
    rank = len(call.inputs[0])
    subscripts = POOL[:rank]
    if call.kind in ("transpose", "t", "swapaxes"):
        (first,) = call.dims("dim0", rank, (0,))
        (second,) = call.dims("dim1", rank, (1,))
        order = list(range(rank))
        if rank > 1:
            order[first] = second
            order[second] = first
    else:
        order = list(call.dims("dims", rank, range(rank)))
    return nest(call, Family.RESHAPE, [subscripts], ["".join(subscripts[d] for d in order)])


def expand(call: Call) -> Nest:
    """Broadcast: stretched dims have a loop in the output only."""
    out = call.outputs[0]
    subscripts = POOL[: len(out)]
    return nest(call, Family.RESHAPE, [broadcast(call.inputs[0], out, subscripts)], [subscripts])


def within(call: Call) -> Nest:
    """Slices, joins, pads, flips: dims that keep their size keep their loop, the one cut or joined stays whole."""
    rank = len(call.outputs[0])
    if any(len(s) != rank for s in (*call.inputs, *call.outputs)):
        return replicated(call, Family.RESHAPE)
    named = call.dims("dim", rank, (0,)) if call.kind in CUTS else call.dims("dims", rank)
    sizes = list(zip(*call.inputs, *call.outputs, strict=True))
    whole = call.kind == "slice" and call.inputs[0] == call.outputs[0]
    subscripts = "".join("." if (d in named and not whole) or len(set(s)) > 1 else POOL[d] for d, s in enumerate(sizes))
    return nest(call, Family.RESHAPE, [subscripts] * len(call.inputs), [subscripts] * len(call.outputs))


def split(call: Call) -> Nest:
    """Split into parts: the dim split becomes a loop when the parts are equal.

    Splitting that loop means that each device holds its share of EVERY part (of a fused query-key-value product: its
    heads of all three), which the weight in front is laid out for when it is sharded.
    """
    shape = call.inputs[0]
    rank = len(shape)
    (dim,) = call.dims("dim", rank, (0,))
    equal = len({out[dim] for out in call.outputs}) == 1 and shape[dim] == sum(out[dim] for out in call.outputs)
    subscripts = "".join("." if d == dim and not equal else POOL[d] for d in range(rank))
    return nest(call, Family.RESHAPE, [subscripts], [subscripts] * len(call.outputs))


def drop(call: Call) -> Nest:
    """Select and unbind: one dim goes."""
    rank = len(call.inputs[0])
    (dim,) = call.dims("dim", rank, (0,))
    subscripts = "".join("." if d == dim else POOL[d] for d in range(rank))
    return nest(call, Family.RESHAPE, [subscripts], [subscripts[:dim] + subscripts[dim + 1 :]] * len(call.outputs))


def stack(call: Call) -> Nest:
    """Stack: one dim comes."""
    rank = len(call.outputs[0])
    (dim,) = call.dims("dim", rank, (0,))
    subscripts = "".join("." if d == dim else POOL[d] for d in range(rank))
    return nest(call, Family.RESHAPE, [subscripts[:dim] + subscripts[dim + 1 :]] * len(call.inputs), [subscripts])


def last_two(call: Call) -> Nest:
    """Triangles: the matrix stays whole."""
    subscripts = POOL[: len(call.outputs[0]) - 2] + ".."
    return nest(call, Family.RESHAPE, [subscripts], [subscripts])


CUTS = frozenset(("slice", "cat", "narrow", "index_fill", "slice_scatter"))
VIEWS = "view _unsafe_view reshape _reshape_alias squeeze unsqueeze flatten unflatten view_as"
SPLITS = "split split_with_sizes chunk unsafe_split unsafe_split_with_sizes unsafe_chunk"
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(VIEWS.split(), view),
    **dict.fromkeys(("permute", "transpose", "t", "swapaxes"), permute),
    "expand": expand,
    **dict.fromkeys((*CUTS, "constant_pad_nd", "flip", "roll"), within),
    **dict.fromkeys(SPLITS.split(), split),
    **dict.fromkeys(("select", "unbind"), drop),
    "stack": stack,
    **dict.fromkeys(("tril", "triu"), last_two),
}
