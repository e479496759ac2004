"""Convolution and pooling: batch and channels may be split, the picture may not (it would need halos)."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import Call, Nest, Rule, nest, replicated


def convolution(call: Call) -> Nest:
    """`out[n, o, ...] = sum_i x[n, i, ...] weight[o, i, ...]`; with groups, channels are split by whole groups."""
    image, weight = call.inputs[:2]
    places = len(weight) - 2
    lead = "n" if len(image) == len(weight) else ""
    blank = "." * places
    if call.integer("groups", 1) > 1:
        words = [lead + "g" + blank, "g." + blank, "g"]
        return nest(call, Family.CONVOLUTION, words[: len(call.inputs)], [lead + "g" + blank], fixed=_fixed(call))
    kernel = ("io" if call.args.get("transposed") else "oi") + blank
    words = [lead + "i" + blank, kernel, "o"]
    return nest(call, Family.CONVOLUTION, words[: len(call.inputs)], [lead + "o" + blank])


def _fixed(call: Call) -> str:
    """Groups that do not tell the channels apart evenly stay whole."""
    groups = call.integer("groups", 1)
    return "" if groups == call.inputs[1][0] == call.inputs[0][-(len(call.inputs[1]) - 1)] else "g"


def pooling(call: Call) -> Nest:
    """Pooling and resizing: each picture and each channel for itself."""
    image = call.inputs[0]
    if len(image) < 3:
        return replicated(call, Family.REDUCTION)
    lead = "nc"[-2:] if len(image) > 3 or len(call.outputs[0]) == len(image) else "c"
    words = [lead + "." * (len(shape) - len(lead)) for shape in (image, *call.outputs)]
    rest = ["." * len(shape) for shape in call.inputs[1:]]
    return nest(call, Family.REDUCTION, [words[0], *rest], words[1:])


POOLS = (
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
    "adaptive_max_pool2d",
    "upsample_nearest2d",
    "upsample_bilinear2d",
    "upsample_bicubic2d",
    "reflection_pad2d",
)
RULES: Mapping[str, Rule] = {"convolution": convolution, **dict.fromkeys(POOLS, pooling)}
