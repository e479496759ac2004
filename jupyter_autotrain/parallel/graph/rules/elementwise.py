"""Element by element: every output dim is a loop; an input stretched by broadcasting has no loop there."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, broadcast, nest, replicated


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
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(NAMES.split(), elementwise),
    "glu": gated,
    **dict.fromkeys(("native_dropout", "dropout"), dropout),
}
