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
        operands = [lead + "g" + blank, "g." + blank, "g"]
        return nest(call, Family.CONVOLUTION, operands[: len(call.inputs)], [lead + "g" + blank], fixed=_fixed(call))
    kernel = ("io" if call.args.get("transposed") else "oi") + blank
    operands = [lead + "i" + blank, kernel, "o"]
    return nest(call, Family.CONVOLUTION, operands[: len(call.inputs)], [lead + "o" + blank])


def _fixed(call: Call) -> str:
    """Groups that do not divide the channels evenly stay whole."""
    groups = call.integer("groups", 1)
    return "" if groups == call.inputs[1][0] == call.inputs[0][-(len(call.inputs[1]) - 1)] else "g"


def pooling(call: Call) -> Nest:
    """Pooling and resizing: each picture and each channel for itself."""
    image = call.inputs[0]
    places = next((int(digit) for digit in call.kind if digit.isdigit()), 2)
    lead = "nc"[max(0, 2 + places - len(image)) :]
    if len(lead) + places != len(image):
        return replicated(call, Family.REDUCTION)
    operands = [lead + "." * (len(shape) - len(lead)) for shape in (image, *call.outputs)]
    rest = ["." * len(shape) for shape in call.inputs[1:]]
    return nest(call, Family.REDUCTION, [operands[0], *rest], operands[1:])


def patches(call: Call) -> Nest:
    """Patches of a picture as columns, and back: (n, c, ...) and (n, c patch, places)."""
    lead = "nc" if len(call.outputs[0]) + len(call.inputs[0]) == 7 else "c"
    operands = [lead + "." * (len(shape) - len(lead)) for shape in (call.inputs[0], call.outputs[0])]
    return nest(call, Family.RESHAPE, operands[:1], operands[1:])


def sampling(call: Call) -> Nest:
    """`out[n, c, y, x] = picture[n, c, grid[n, y, x]]`."""
    operands = ["nc" + "." * (len(call.inputs[0]) - 2), "n" + "." * (len(call.inputs[1]) - 1)]
    return nest(call, Family.REDUCTION, operands, ["nc" + "." * (len(call.outputs[0]) - 2)])


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
    "upsample_nearest1d",
    "upsample_nearest3d",
    "upsample_linear1d",
    "upsample_trilinear3d",
    "_upsample_nearest_exact2d",
    "_upsample_bilinear2d_aa",
    "_upsample_bicubic2d_aa",
    "reflection_pad1d",
    "reflection_pad2d",
    "reflection_pad3d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "adaptive_max_pool3d",
)
RULES: Mapping[str, Rule] = {
    "convolution": convolution,
    **dict.fromkeys(POOLS, pooling),
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle"), pooling),
    **dict.fromkeys(("im2col", "col2im"), patches),
    **dict.fromkeys(("grid_sampler_2d", "grid_sampler_3d"), sampling),
}
