"""Normalisation: dims that are averaged over stay whole, except the batch of a batch norm.

A batch norm split over the batch uses each device's own statistics, as data-parallel training does unless the model
has a synchronised batch norm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, nest


def layer_norm(call: Call) -> Nest:
    """Layer and RMS norm over the trailing dims that the weight has (the last one without a weight)."""
    rank = len(call.inputs[0])
    subscripts = POOL[:rank]
    tail = subscripts[rank - _depth(call) :]
    inputs = [subscripts, *(tail[-len(shape) :] if shape else "" for shape in call.inputs[1:])]
    return nest(call, Family.NORM, inputs, _outputs(call, subscripts), fixed=tail)


def _depth(call: Call) -> int:
    """Number of dims that are averaged over."""
    given = call.args.get("normalized_shape")
    if isinstance(given, Sequence):
        return len(given)
    return len(call.inputs[1]) if len(call.inputs) > 1 else 1


def batch_norm(call: Call) -> Nest:
    """Per-channel norm: batch and channels may be split."""
    image = call.inputs[0]
    subscripts = "nc" + "." * (len(image) - 2)
    inputs = [subscripts, *("c" if len(shape) == 1 else "." * len(shape) for shape in call.inputs[1:])]
    takes_statistics = call.args.get("training", call.args.get("train", True)) is not False
    return nest(call, Family.NORM, inputs, _outputs(call, subscripts), mixed="n" if takes_statistics else "")


def group_norm(call: Call) -> Nest:
    """Norm within groups of channels: the batch may be split."""
    subscripts = "n" + "." * (len(call.inputs[0]) - 1)
    inputs = [subscripts, *("." * len(shape) for shape in call.inputs[1:])]
    return nest(call, Family.NORM, inputs, _outputs(call, subscripts))


def weight_norm(call: Call) -> Nest:
    """`weight = g v / |v|`, a norm for each slice of one dim, along which it may be split."""
    rank = len(call.inputs[0])
    (dim,) = call.dims("dim", rank, (0,))
    kept = "." * dim + POOL[dim] + "." * (rank - dim - 1)
    operands = [kept if len(shape) == rank else "." * len(shape) for shape in (*call.inputs, *call.outputs)]
    return nest(call, Family.NORM, operands[: len(call.inputs)], operands[len(call.inputs) :])


def _outputs(call: Call, subscripts: str) -> list[str]:
    """The first output is like the input; statistics are not followed."""
    return [subscripts, *("." * len(shape) for shape in call.outputs[1:])]


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("native_layer_norm", "layer_norm", "rms_norm", "_fused_rms_norm"), layer_norm),
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit", "batch_norm_with_update"), batch_norm),
    "native_group_norm": group_norm,
    "_weight_norm_interface": weight_norm,
}
