"""Views: dims that are split, joined, moved or read by strides."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import gcd, prod

import numpy as np

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import (
    POOL,
    Call,
    Nest,
    Rule,
    Shape,
    broadcast,
    letters,
    nest,
    replicated,
)


def view(call: Call) -> Nest:
    """Return a view: dims fall into groups of equal products.

    The leading dims of a group's two sides run along one loop.
    """
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
    left: list[int] = []
    right: list[int] = []
    dims = deque(range(len(shape)))
    out_dims = deque(range(len(out)))
    while dims or out_dims:
        a = prod(map(shape.__getitem__, left))
        b = prod(map(out.__getitem__, right))
        if left and right and a == b:
            yield left, right
            left = []
            right = []
        elif not out_dims or (dims and a <= b):
            left.append(dims.popleft())
        else:
            right.append(out_dims.popleft())
    if left or right:
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
    operands = (*call.inputs, *call.outputs)
    if {*map(len, operands)} != {rank}:
        return replicated(call, Family.RESHAPE)
    if _numbers(call, "parts"):
        return _part_cut_out(call)
    named = call.dims("dim", rank, (0,)) if call.kind in CUTS else call.dims("dims", rank)
    if call.kind == "slice" and call.inputs[0] == call.outputs[0]:
        named = ()
    sizes = np.array(operands)
    changed = np.flatnonzero((sizes != sizes[0]).any(axis=0)).tolist()
    subscripts = letters(rank, {*named, *changed})
    return nest(call, Family.RESHAPE, [subscripts] * len(call.inputs), [subscripts] * len(call.outputs))


def _part_cut_out(call: Call) -> Nest:
    """Return the nest of a slice that is one of the parts into which a product's output is cut.

    Argument: `parts`, the sizes of all of them. A device has its share of each, as with a split into parts.
    """
    (dim,) = call.dims("dim", len(call.inputs[0]), (0,))
    subscripts = letters(len(call.inputs[0]))
    whole = nest(call, Family.RESHAPE, [subscripts], [subscripts])
    along = whole.outputs[0][dim]
    size = gcd(*_numbers(call, "parts"))
    loops = [
        replace(loop, size=size, shardable=size > 1) if number == along else loop
        for number, loop in enumerate(whole.loops)
    ]
    return replace(whole, loops=tuple(loops))


def part_written(call: Call) -> Nest:
    """Return the nest of `x[..., 1:] = y` or `x[..., 0] = y`: dims of `x` that the part has whole keep their loop.

    Arguments: `input_stride` and `stride`, the strides of `x` and of the part; without them as any other cut.
    """
    shape, part = call.inputs[:2]
    own = _numbers(call, "input_stride")
    made = _numbers(call, "stride")
    if not own:
        return within(call)
    places = [own.index(stride) if own.count(stride) == 1 else None for stride in made]
    if len(part) != len(made) or None in places:
        return replicated(call, Family.RESHAPE)
    sizes = dict(zip(places, part, strict=True))
    base = letters(len(shape), {dim for dim, size in enumerate(shape) if sizes.get(dim) != size})
    written = "".join(base[place] for place in places if place is not None)
    return nest(call, Family.RESHAPE, [base, written], [base])


def split(call: Call) -> Nest:
    """Split into parts: the dim split becomes a loop when the parts are equal, or those of a product (`parts`).

    Splitting that loop means that each device holds its share of EVERY part (of a fused query-key-value product: its
    heads of all three), which the weight in front is laid out for when it is sharded.
    """
    shape = call.inputs[0]
    rank = len(shape)
    (dim,) = call.dims("dim", rank, (0,))
    parts = [out[dim] for out in call.outputs]
    equal = len(set(parts)) == 1 and shape[dim] == sum(parts)
    subscripts = letters(rank, () if equal or _numbers(call, "parts") else (dim,))
    return nest(call, Family.RESHAPE, [subscripts], [subscripts] * len(call.outputs))


def drop(call: Call) -> Nest:
    """Select and unbind: one dim goes."""
    rank = len(call.inputs[0])
    (dim,) = call.dims("dim", rank, (0,))
    subscripts = letters(rank, (dim,))
    return nest(call, Family.RESHAPE, [subscripts], [subscripts[:dim] + subscripts[dim + 1 :]] * len(call.outputs))


def stack(call: Call) -> Nest:
    """Stack: one dim comes."""
    rank = len(call.outputs[0])
    (dim,) = call.dims("dim", rank, (0,))
    subscripts = letters(rank, (dim,))
    return nest(call, Family.RESHAPE, [subscripts[:dim] + subscripts[dim + 1 :]] * len(call.inputs), [subscripts])


def last_two(call: Call) -> Nest:
    """Triangles: the matrix stays whole."""
    subscripts = POOL[: len(call.outputs[0]) - 2] + ".."
    return nest(call, Family.RESHAPE, [subscripts], [subscripts])


CUTS = frozenset(("slice", "cat", "narrow", "index_fill", "slice_scatter"))
VIEWS = "view _unsafe_view reshape _reshape_alias squeeze unsqueeze flatten unflatten view_as"
SPLITS = "split split_with_sizes chunk unsafe_split unsafe_split_with_sizes unsafe_chunk"
RESHAPE_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(VIEWS.split(), view),
    **dict.fromkeys(("permute", "transpose", "t", "swapaxes"), permute),
    "expand": expand,
    **dict.fromkeys((*CUTS, "constant_pad_nd", "flip", "roll"), within),
    "slice_scatter": part_written,
    **dict.fromkeys(SPLITS.split(), split),
    **dict.fromkeys(("select", "unbind"), drop),
    "stack": stack,
    **dict.fromkeys(("tril", "triu"), last_two),
}


def repeat(call: Call) -> Nest:
    """`x.repeat(...)`: dims that are not repeated pass through; new ones in front are loops of the output alone."""
    shape = call.inputs[0]
    out = call.outputs[0]
    new = len(out) - len(shape)
    repeated = np.flatnonzero(np.not_equal(shape, out[new:])) + new
    subscripts = letters(len(out), repeated.tolist())
    return nest(call, Family.RESHAPE, [subscripts[new:]], [subscripts])


def unfold(call: Call) -> Nest:
    """`x.unfold(dimension, size, step)`: windows along one dim, which stays whole; their elements come last."""
    rank = len(call.inputs[0])
    (dim,) = call.dims("dimension", rank, (0,))
    subscripts = letters(rank, (dim,))
    return nest(call, Family.RESHAPE, [subscripts], [subscripts + "."])


def as_complex(call: Call) -> Nest:
    """Pairs of the last dim become complex numbers."""
    subscripts = POOL[: len(call.outputs[0])]
    return nest(call, Family.RESHAPE, [subscripts + "."], [subscripts])


def as_real(call: Call) -> Nest:
    """Complex numbers become pairs in a new last dim."""
    subscripts = POOL[: len(call.inputs[0])]
    return nest(call, Family.RESHAPE, [subscripts], [subscripts + "."])


def as_strided(call: Call) -> Nest:
    """Return a view by strides: a view or a permutation where it is one.

    Else each dim is split that no other reaches into.

    Arguments: `size`, `stride`, `storage_offset` as of torch, and `input_stride`, the strides of the input.
    """
    shape = call.inputs[0]
    out = call.outputs[0]
    own = _numbers(call, "input_stride")
    made = _numbers(call, "stride")
    if len(own) != len(shape) or len(made) != len(out) or call.integer("storage_offset", 0):
        return replicated(call, Family.RESHAPE)
    if _is_contiguous(shape, own) and _is_contiguous(out, made):
        same = prod(shape) == prod(out)
        return view(call) if same else replicated(call, Family.RESHAPE)
    return _by_strides(call, own, made)


def _by_strides(call: Call, own: Sequence[int], made: Sequence[int]) -> Nest:
    """Return the nest in which each dim of the output goes with the only one of the input of its size and stride."""
    shape = call.inputs[0]
    out = call.outputs[0]
    places = list(zip(out, made, strict=True))
    source = ["."] * len(shape)
    target = ["."] * len(out)
    for letter, (dim, size) in zip(POOL, enumerate(shape), strict=False):
        if size > 1 and places.count((size, own[dim])) == 1:
            found = places.index((size, own[dim]))
            if _is_alone(found, out, made):
                source[dim] = target[found] = letter
    return nest(call, Family.RESHAPE, ["".join(source)], ["".join(target)])


def _is_alone(dim: int, shape: Shape, strides: Sequence[int]) -> bool:
    """Return whether no sum of steps along the other dims amounts to a step along this one."""
    step = strides[dim]
    end = strides[dim] * shape[dim]
    others = [(size, stride) for d, (size, stride) in enumerate(zip(shape, strides, strict=True)) if d != dim]
    below = sum((size - 1) * stride for size, stride in others if stride < step)
    return below < step and all(stride % end == 0 for size, stride in others if stride >= step and size > 1)


def _is_contiguous(shape: Shape, strides: Sequence[int]) -> bool:
    wide = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    dense = all(outer[1] == inner[0] * inner[1] for outer, inner in pairwise(wide))
    return not wide or (wide[-1][1] == 1 and dense)


def _numbers(call: Call, name: str) -> list[int]:
    given = call.args.get(name)
    return [n for n in given if isinstance(n, int)] if isinstance(given, Sequence) else []


STRIDES_RULES: Mapping[str, Rule] = {
    "repeat": repeat,
    "unfold": unfold,
    "view_as_complex": as_complex,
    "view_as_real": as_real,
    **dict.fromkeys(("as_strided", "as_strided_copy"), as_strided),
}
