"""Convolutions, transforms and recurrent layers: a window, a spectrum or a sequence is walked along one loop."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import Call, Nest, Rule, dots, led, letters, nest, replicated


def transform(call: Call) -> Nest:
    """`out[..., k] = sum_n x[..., n] exp(-2 pi i k n / N)` over the dims named by `dim`."""
    rank = len(call.inputs[0])
    dims = call.dims("dim", rank, (rank - 1,))
    subscripts = letters(rank, dims)
    return nest(call, Family.FOURIER, [subscripts], [subscripts])


FOURIER_RULES: Mapping[str, Rule] = dict.fromkeys(("_fft_c2c", "_fft_r2c", "_fft_c2r"), transform)


def recurrent(call: Call) -> Nest:
    """`out[t, n], state[n] = cell(x[t, n], state[n])` for one layer, in one or both directions.

    Arguments: `samples`, the dim of input and output that counts samples (0 or 1; -1 where there is none: one sample,
    or packed sequences of several lengths), and `states`, the number of states behind the input. States are
    (directions, samples, width); all other inputs are weights.
    """
    samples = call.integer("samples", -1)
    states = call.integer("states", 1)
    carried = call.inputs[1 : 1 + states]
    weights = dots(call.inputs[1 + states :])
    if samples < 0:
        return nest(call, Family.RECURRENT, [*dots((call.inputs[0], *carried)), *weights], dots(call.outputs))
    sequence = led("." * samples + "n", call.inputs[:1])
    made = [*sequence, *[".n."] * (len(call.outputs) - 1)]
    return nest(call, Family.RECURRENT, [*sequence, *[".n."] * len(carried), *weights], made)


RECURRENT_RULES: Mapping[str, Rule] = dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), recurrent)


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
    """Return the role of the groups; those that do not divide the channels evenly stay whole."""
    groups = call.integer("groups", 1)
    return "" if groups == call.inputs[1][0] == call.inputs[0][-(len(call.inputs[1]) - 1)] else "g"


def pooling(call: Call) -> Nest:
    """Pooling and resizing: each picture and each channel for itself."""
    image = call.inputs[0]
    places = next((int(digit) for digit in call.kind if digit.isdigit()), 2)
    lead = "nc"[max(0, 2 + places - len(image)) :]
    if len(lead) + places != len(image):
        return replicated(call, Family.REDUCTION)
    return nest(call, Family.REDUCTION, [*led(lead, [image]), *dots(call.inputs[1:])], led(lead, call.outputs))


def patches(call: Call) -> Nest:
    """Patches of a picture as columns, and back: (n, c, ...) and (n, c patch, places)."""
    lead = "nc" if len(call.outputs[0]) + len(call.inputs[0]) == 7 else "c"
    return nest(call, Family.RESHAPE, led(lead, call.inputs[:1]), led(lead, call.outputs[:1]))


def sampling(call: Call) -> Nest:
    """`out[n, c, y, x] = picture[n, c, grid[n, y, x]]`."""
    picture, grid = call.inputs
    return nest(call, Family.REDUCTION, [*led("nc", [picture]), *led("n", [grid])], led("nc", call.outputs[:1]))


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
CONVOLUTION_RULES: Mapping[str, Rule] = {
    "convolution": convolution,
    **dict.fromkeys(POOLS, pooling),
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle"), pooling),
    **dict.fromkeys(("im2col", "col2im"), patches),
    **dict.fromkeys(("grid_sampler_2d", "grid_sampler_3d"), sampling),
}
