"""Views by strides, windows and repetition: which dims keep their meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, Shape, nest, replicated
from jupyter_autotrain.parallel.graph.rules.reshape import view


def repeat(call: Call) -> Nest:
    """`x.repeat(...)`: dims that are not repeated pass through; new ones in front are loops of the output alone."""
    shape = call.inputs[0]
    out = call.outputs[0]
    new = len(out) - len(shape)
    subscripts = "".join("." if d >= new and shape[d - new] != size else POOL[d] for d, size in enumerate(out))
    return nest(call, Family.RESHAPE, [subscripts[new:]], [subscripts])


def unfold(call: Call) -> Nest:
    """`x.unfold(dimension, size, step)`: windows along one dim, which stays whole; their elements come last."""
    rank = len(call.inputs[0])
    (dim,) = call.dims("dimension", rank, (0,))
    subscripts = "".join("." if d == dim else POOL[d] for d in range(rank))
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
    """A view by strides: a view or a permutation where it is one; else each dim is split that no other reaches into.

    Arguments: `size`, `stride`, `storage_offset` as of torch, and `input_stride`, the strides of the input.
    """
    shape = call.inputs[0]
    out = call.outputs[0]
    own = _numbers(call, "input_stride")
    made = _numbers(call, "stride")
    if len(own) != len(shape) or len(made) != len(out) or call.integer("storage_offset", 0):
        return replicated(call, Family.RESHAPE)
    if _is_contiguous(shape, own) and _is_contiguous(out, made):
        same = _numel(shape) == _numel(out)
        return view(call) if same else replicated(call, Family.RESHAPE)
    source = ["."] * len(shape)
    target = ["."] * len(out)
    for letter, (dim, size) in zip(POOL, enumerate(shape), strict=False):
        along = [d for d in range(len(out)) if out[d] == size > 1 and made[d] == own[dim]]
        if len(along) == 1 and _is_alone(along[0], out, made):
            source[dim] = target[along[0]] = letter
    return nest(call, Family.RESHAPE, ["".join(source)], ["".join(target)])


def _is_alone(dim: int, shape: Shape, strides: Sequence[int]) -> bool:
    """Whether no sum of steps along the other dims amounts to a step along this one."""
    step = strides[dim]
    end = strides[dim] * shape[dim]
    others = [(size, stride) for d, (size, stride) in enumerate(zip(shape, strides, strict=True)) if d != dim]
    below = sum((size - 1) * stride for size, stride in others if stride < step)
    return below < step and all(stride % end == 0 for size, stride in others if stride >= step and size > 1)


def _is_contiguous(shape: Shape, strides: Sequence[int]) -> bool:
    wide = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    dense = all(outer[1] == inner[0] * inner[1] for outer, inner in pairwise(wide))
    return not wide or (wide[-1][1] == 1 and dense)


def _numel(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _numbers(call: Call, name: str) -> list[int]:
    given = call.args.get(name)
    return [n for n in given if isinstance(n, int)] if isinstance(given, Sequence) else []


RULES: Mapping[str, Rule] = {
    "repeat": repeat,
    "unfold": unfold,
    "view_as_complex": as_complex,
    "view_as_real": as_real,
    **dict.fromkeys(("as_strided", "as_strided_copy"), as_strided),
}
