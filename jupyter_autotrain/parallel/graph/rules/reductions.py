"""Elementwise ops, and those that reduce: sums, norms, losses.

Normalisation: dims that are averaged over stay whole, except the batch of a batch norm. A batch norm split over the
batch uses each device's own statistics, as data-parallel training does unless the model has a synchronised batch
norm.

Losses. The classes of a log-softmax may be split (vocabulary parallel). Each device then holds the logits of its
classes; the row maxima and the row sums (two floats per row) are combined across devices inside the op, and the
picked log-probability comes out Partial, zero where the class lies elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import (
    POOL,
    Call,
    Nest,
    Rule,
    alike,
    broadcast,
    dots,
    letters,
    nest,
    replicated,
)


def elementwise(call: Call, family: Family = Family.ELEMENTWISE) -> Nest:
    """`out[...] = f(a[...], b[...], ...)`."""
    out = call.outputs[0]
    if any(shape != out for shape in call.outputs) or any(len(shape) > len(out) for shape in call.inputs):
        return replicated(call, family)
    subscripts = POOL[: len(out)]
    return nest(
        call, family, [broadcast(shape, out, subscripts) for shape in call.inputs], [subscripts] * len(call.outputs)
    )


def gated(call: Call) -> Nest:
    """One half of a dim gates the other: that dim stays whole."""
    pairs = zip(call.inputs[0], call.outputs[0], strict=True)
    subscripts = "".join(POOL[d] if size == made else "." for d, (size, made) in enumerate(pairs))
    return nest(call, Family.ELEMENTWISE, [subscripts], [subscripts])


def dropout(call: Call) -> Nest:
    """Dropout: element by element, each device draws its own mask."""
    return elementwise(call, Family.DROPOUT)


NAMES = """
add sub rsub mul div pow neg abs sign exp exp2 expm1 log log2 log1p sqrt rsqrt reciprocal square sin cos tan tanh asin
acos atan atan2 sinh cosh sigmoid relu relu6 leaky_relu gelu silu mish elu selu celu softplus hardtanh hardsigmoid
hardswish log_sigmoid_forward threshold clamp clamp_min clamp_max where masked_fill maximum minimum fmax fmin remainder
fmod floor_divide floor ceil round trunc erf erfc erfinv lerp addcmul addcdiv eq ne lt le gt ge logical_and logical_or
logical_xor logical_not bitwise_and bitwise_or bitwise_not bitwise_xor isnan isinf isfinite nan_to_num _to_copy clone
copy contiguous fill zero zeros_like ones_like full_like empty_like rand_like randn_like bernoulli uniform
alias detach lift_fresh lift_fresh_copy prelu _prelu_kernel xlogy
_conj conj_physical resolve_conj _neg_view resolve_neg real imag angle complex polar
"""
ELEMENTWISE_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(NAMES.split(), elementwise),
    "glu": gated,
    **dict.fromkeys(("native_dropout", "dropout"), dropout),
}


def linear_reduction(call: Call) -> Nest:
    """`out = sum over dims`: splitting a summed dim leaves a Partial output (a mean of equal parts is their mean)."""
    return _reduce(call, fixed=False)


def reduction(call: Call) -> Nest:
    """Any other reduction: the reduced dims stay whole."""
    return _reduce(call, fixed=True)


def _reduce(call: Call, *, fixed: bool) -> Nest:
    shape = call.inputs[0]
    out = call.outputs[0]
    rank = len(shape)
    subscripts = POOL[:rank]
    dims = call.dims("dim", rank) or tuple(range(rank))
    wide = letters(rank, dims)
    kept = wide.replace(".", "")
    if len(out) not in (len(kept), rank) or {*map(len, call.outputs)} != {len(out)}:
        return replicated(call, Family.REDUCTION)
    outputs = [wide if len(out) == rank else kept] * len(call.outputs)
    reduced = "".join(map(subscripts.__getitem__, dims))
    return nest(call, Family.REDUCTION, [subscripts, *dots(call.inputs[1:])], outputs, fixed=reduced if fixed else "")


def along(call: Call) -> Nest:
    """Softmax, cumulative sums, sorting, top-k: the dim worked along stays whole, the others are independent."""
    rank = len(call.inputs[0])
    dims = call.dims("dim", rank, default=(-1,))
    subscripts = letters(rank, dims)
    if {*map(len, call.outputs)} - {rank}:
        return replicated(call, Family.REDUCTION)
    return nest(call, Family.REDUCTION, [subscripts, *dots(call.inputs[1:])], [subscripts] * len(call.outputs))


REDUCTION_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("sum", "mean", "nansum"), linear_reduction),
    **dict.fromkeys(
        [
            "amax",
            "amin",
            "max",
            "min",
            "argmax",
            "argmin",
            "var",
            "std",
            "var_mean",
            "prod",
            "any",
            "all",
            "norm",
            "linalg_vector_norm",
            "logsumexp",
        ],
        reduction,
    ),
    **dict.fromkeys(["rotary", "_softmax", "softmax", "cumsum", "cumprod", "sort", "topk", "logcumsumexp"], along),
}


def layer_norm(call: Call) -> Nest:
    """Layer and RMS norm over the trailing dims that the weight has (the last one without a weight)."""
    rank = len(call.inputs[0])
    subscripts = POOL[:rank]
    tail = subscripts[rank - _depth(call) :]
    inputs = [subscripts, *(tail[-len(shape) :] if shape else "" for shape in call.inputs[1:])]
    return nest(call, Family.NORM, inputs, _outputs(call, subscripts), fixed=tail)


def _depth(call: Call) -> int:
    """Return number of dims that are averaged over."""
    given = call.args.get("normalized_shape")
    if isinstance(given, Sequence):
        return len(given)
    return len(call.inputs[1]) if len(call.inputs) > 1 else 1


def batch_norm(call: Call) -> Nest:
    """Per-channel norm: batch and channels may be split."""
    image = call.inputs[0]
    subscripts = "nc" + "." * (len(image) - 2)
    inputs = [subscripts, *alike("c", call.inputs[1:])]
    takes_statistics = call.args.get("training", call.args.get("train", True)) is not False
    return nest(call, Family.NORM, inputs, _outputs(call, subscripts), mixed="n" if takes_statistics else "")


def group_norm(call: Call) -> Nest:
    """Norm within groups of channels: the batch may be split."""
    subscripts = "n" + "." * (len(call.inputs[0]) - 1)
    inputs = [subscripts, *dots(call.inputs[1:])]
    return nest(call, Family.NORM, inputs, _outputs(call, subscripts))


def weight_norm(call: Call) -> Nest:
    """`weight = g v / |v|`, a norm for each slice of one dim, along which it may be split."""
    rank = len(call.inputs[0])
    (dim,) = call.dims("dim", rank, (0,))
    kept = "." * dim + POOL[dim] + "." * (rank - dim - 1)
    return nest(call, Family.NORM, alike(kept, call.inputs), alike(kept, call.outputs))


def _outputs(call: Call, subscripts: str) -> list[str]:
    """Return the axes of an output: the first is like the input; statistics are not followed."""
    return [subscripts, *dots(call.outputs[1:])]


NORM_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("native_layer_norm", "layer_norm", "rms_norm", "_fused_rms_norm"), layer_norm),
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit", "batch_norm_with_update"), batch_norm),
    "native_group_norm": group_norm,
    "_weight_norm_interface": weight_norm,
}


def log_softmax(call: Call) -> Nest:
    """`out[..., c] = x[..., c] - log sum_c exp x[..., c]`."""
    subscripts = POOL[: len(call.inputs[0])]
    (dim,) = call.dims("dim", len(subscripts), default=(len(subscripts) - 1,)) or (0,)
    return nest(call, Family.LOSS, [subscripts], [subscripts], mixed=subscripts[dim])


def nll(call: Call) -> Nest:
    """`out = mean over rows of -log_probability[row, target[row]]`."""
    shape = call.inputs[0]
    rest = POOL[: len(shape) - 2]
    lead = "n" if len(shape) > 1 else ""
    weight = ["c"] * (len(call.inputs) - 2)
    outputs = [(lead + rest) if len(out) == len(shape) - 1 and out else "" for out in call.outputs]
    return nest(call, Family.LOSS, [lead + "c" + rest, lead + rest, *weight], outputs, mixed="c")


def cross_entropy(call: Call) -> Nest:
    """Log-softmax and the pick in one op."""
    same = call.inputs[0] == call.inputs[1]
    return replicated(call, Family.LOSS) if same else nll(call)


def distance(call: Call) -> Nest:
    """Elementwise losses, reduced to a scalar or not."""
    shape = call.inputs[0]
    subscripts = POOL[: len(shape)]
    inputs = [broadcast(s, shape, subscripts) for s in call.inputs]
    return nest(call, Family.LOSS, inputs, [subscripts if out == shape else "" for out in call.outputs])


LOSS_RULES: Mapping[str, Rule] = {
    "_log_softmax": log_softmax,
    "log_softmax": log_softmax,
    **dict.fromkeys(("nll_loss_forward", "nll_loss", "nll_loss2d_forward"), nll),
    "cross_entropy_loss": cross_entropy,
    **dict.fromkeys(
        [
            "mse_loss",
            "l1_loss",
            "smooth_l1_loss",
            "huber_loss",
            "binary_cross_entropy",
            "binary_cross_entropy_with_logits",
            "kl_div",
            "soft_margin_loss",
        ],
        distance,
    ),
}
