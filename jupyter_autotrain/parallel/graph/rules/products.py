"""Products: matrices, attention, linear algebra, mixtures of experts.

Experts of a mixture as one op: tokens, experts and the experts' inner width may be split. Splitting the experts gives
each device all tokens of its group and its own experts; what the experts of one token give is summed, so the output
is Partial. Work is taken as evenly routed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules.nest import POOL, Call, Nest, Rule, Shape, broadcast, dots, nest, replicated


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


MATMUL_RULES: Mapping[str, Rule] = {
    "linear": linear,
    **dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot"), product),
    **dict.fromkeys(("addmm", "baddbmm"), added_product),
    "einsum": einsum,
}


def attention(call: Call) -> Nest:
    """`out[b, h, s, w] = softmax(q[b, h, s, d] k[b, g, t, d]) v[b, g, t, w]`, mask broadcast over the scores.

    Query heads are a multiple of the key-value heads g; the head loop has g iterations, so that a split keeps each
    group of queries with its keys.
    """
    query, key = call.inputs[:2]
    if len(query) < 3 or len(key) != len(query):
        return replicated(call, Family.ATTENTION)
    outer = POOL[: len(query) - 3] + "h"
    operands = [outer + "sd", outer + "td", outer + "tw"]
    scores = (*query[:-1], key[-2])
    operands += [broadcast(shape, scores, outer + "st") for shape in call.inputs[3:]]
    out = call.outputs[0]
    extra = [(outer + "s" + "." * len(shape))[: len(shape)] for shape in call.outputs[1:]]
    return nest(call, Family.ATTENTION, operands, [(outer + "sw")[-len(out) :], *extra], fixed="sdtw")


ATTENTION_RULES: Mapping[str, Rule] = dict.fromkeys(
    ("attention", "scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu"), attention
)


def matrices(call: Call) -> Nest:
    """`out[b] = f(a[b])` for matrices `a[b]`, batch dims broadcast."""
    shape = max(call.inputs, key=len)
    outer = shape[:-2]
    subscripts = POOL[: len(outer)]

    def named(other: tuple[int, ...]) -> str:
        front = broadcast(other[: len(outer)], outer, subscripts) if len(other) >= len(outer) else ""
        return front + "." * (len(other) - len(front))

    return nest(call, Family.LINALG, list(map(named, call.inputs)), list(map(named, call.outputs)))


def distances(call: Call) -> Nest:
    """`out[b, n, m] = |x[b, n, :] - y[b, m, :]|`."""
    out = call.outputs[0]
    outer = POOL[: len(out) - 2]
    first, second = (broadcast(shape[:-2], out[:-2], outer) for shape in call.inputs)
    return nest(call, Family.LINALG, [first + "nk", second + "mk"], [outer + "nm"], fixed="k")


def trilinear(call: Call) -> Nest:
    """`out[r, o] = sum over i and j of a[r, i] w[o, i, j] b[r, j]`, as `torch.bilinear` calls it.

    `expand1`, `expand2` and `expand3` name the dims of size 1 with which each operand is stretched.
    """
    stretched = [_dims_of(f"expand{place}", call) for place in (1, 2, 3)]
    letters = POOL[: len(call.inputs[0]) + len(stretched[0])]
    summed = call.dims("sumdim", len(letters))
    inputs = [_without(letters, dims) for dims in stretched]
    out = _without(letters, summed)
    return nest(call, Family.MATMUL, inputs, [out])


def _without(letters: str, places: Sequence[int]) -> str:
    """Return the letters that stand at none of the places."""
    return "".join(letter for place, letter in enumerate(letters) if place not in places)


def _dims_of(name: str, call: Call) -> tuple[int, ...]:
    given = call.args.get(name)
    return tuple(d for d in given if isinstance(d, int)) if isinstance(given, list | tuple) else ()


NAMES = """
linalg_cholesky_ex linalg_lu_factor_ex _linalg_det _linalg_slogdet linalg_inv_ex _linalg_solve_ex linalg_lu_solve
linalg_solve_triangular triangular_solve
"""
LINALG_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(NAMES.split(), matrices),
    **dict.fromkeys(("_cdist_forward", "_euclidean_dist"), distances),
    "_trilinear": trilinear,
}


def experts(call: Call) -> Nest:
    """`out[t, d] = sum over e in chosen[t] of weight[t, e] * (f(x[t, d] first[e, ., d]) second[e, d, i])[d]`.

    Inputs: tokens (..., d), then per-token routing (..., k) in any number, then expert parameters (e, ...). The inner
    width i is split where a parameter's trailing dims distinguish it from d; where gate and up lie in one parameter, a
    part holds its share of both, as with the parts of a `split`.
    """
    tokens = call.inputs[0]
    experts_count = call.integer("experts", 0)
    if not experts_count:
        return replicated(call, Family.MOE)
    rows = POOL[: len(tokens) - 1]
    width = tokens[-1]
    operands = [rows + "."]
    for shape in call.inputs[1:]:
        if shape[:1] == (experts_count,):
            operands.append(_parameter(shape, width, call.integer("inner", 0)))
        else:
            operands.append(rows + "." if shape[:-1] == tokens[:-1] else "." * len(shape))
    return nest(call, Family.MOE, operands, [rows + "." if out == tokens else "." * len(out) for out in call.outputs])


def _parameter(shape: tuple[int, ...], width: int, inner: int) -> str:
    """Experts lead; a dim that is a multiple of the inner width and is not the tokens' runs along it."""
    subscripts = "e"
    used = False
    for size in shape[1:]:
        along = not used and inner > 1 and size % inner == 0 and (size != width or shape[1:].count(width) > 1)
        subscripts, used = subscripts + ("i" if along else "."), used or along
    return subscripts


def grouped_product(call: Call) -> Nest:
    """`out[t, n] = sum_k x[t, k] weight[expert of t, k, n]`, rows sorted by expert, so they split with the experts."""
    tokens, weight = call.inputs[:2]
    if len(tokens) != 2 or len(weight) != 3 or tokens[0] % weight[0]:
        return replicated(call, Family.MOE)
    rest = dots(call.inputs[2:])
    return nest(call, Family.MOE, ["ek", "ekn", *rest], ["en"])


MOE_RULES: Mapping[str, Rule] = {"experts": experts, "_grouped_mm": grouped_product, "grouped_mm": grouped_product}
