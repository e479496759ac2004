"""Losses. The classes of a log-softmax may be split (vocabulary parallel).

Each device then holds the logits of its classes; the row maxima and the row sums (two floats per row) are combined
across devices inside the op, and the picked log-probability comes out Partial, zero where the class lies elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, broadcast, nest, replicated


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


RULES: Mapping[str, Rule] = {
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
