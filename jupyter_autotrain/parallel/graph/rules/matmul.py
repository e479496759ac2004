"""Matrix products: every loop may be split; the summed one leaves Partial outputs."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, Shape, broadcast, nest, replicated


def linear(call: Call) -> Nest:
    """`out[..., n] = sum_k x[..., k] weight[n, k] + bias[n]`."""
    rows = POOL[: len(call.inputs[0]) - 1]
    return nest(call, Family.MATMUL, [rows + "k", "nk", "n"][: len(call.inputs)], [rows + "n"])


def product(call: Call) -> Nest:
    """`out[..., m, n] = sum_k a[..., m, k] b[..., k, n]` with broadcast batch dims and vectors, as `torch.matmul`."""
    (a, b) = call.inputs
    out = call.outputs[0]
    tail = ("m" if len(a) > 1 else "") + ("n" if len(b) > 1 else "")
    batch = POOL[: len(out) - len(tail)]
    shape = out[: len(batch)]
    word_a = broadcast(a[:-2], shape, batch) + ("mk" if len(a) > 1 else "k")
    word_b = broadcast(b[:-2], shape, batch) + ("kn" if len(b) > 1 else "k")
    return nest(call, Family.MATMUL, [word_a, word_b], [batch + tail])


def added_product(call: Call) -> Nest:
    """`out = beta * c + alpha * a @ b`, c broadcast."""
    plain = Call(call.kind, call.inputs[1:], call.outputs)
    found = product(plain)
    out_subscripts = POOL[: len(call.outputs[0]) - 2] + "mn"
    batch = out_subscripts[:-2]
    operands = [broadcast(call.inputs[0], call.outputs[0], out_subscripts), batch + "mk", batch + "kn"]
    if any(len(shape) != len(batch) + 2 for shape in call.inputs[1:]):
        return replicated(call, found.family)
    return nest(call, Family.MATMUL, operands, [out_subscripts])


def einsum(call: Call) -> Nest:
    """Any `einsum` equation without repeated letters in one operand."""
    equation = str(call.args.get("equation", "")).replace(" ", "")
    if "->" not in equation or "." in equation:
        return replicated(call, Family.MATMUL)
    left, right = equation.split("->")
    operands = left.split(",")
    if len(operands) != len(call.inputs) or any(len(set(subscripts)) != len(subscripts) for subscripts in operands):
        return replicated(call, Family.MATMUL)
    renamed = str.maketrans({letter: POOL[i] for i, letter in enumerate(sorted(set(left) - {","}))})
    pairs = zip(operands, call.inputs, strict=True)
    stretched = [_stretched(subscripts.translate(renamed), shape) for subscripts, shape in pairs]
    return nest(call, Family.MATMUL, stretched, [right.translate(renamed)])


def _stretched(subscripts: str, shape: Shape) -> str:
    """Subscripts without the dims of size 1, which broadcast."""
    return "".join("." if size == 1 else letter for letter, size in zip(subscripts, shape, strict=True))


RULES: Mapping[str, Rule] = {
    "linear": linear,
    **dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot"), product),
    **dict.fromkeys(("addmm", "baddbmm"), added_product),
    "einsum": einsum,
}
