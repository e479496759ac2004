"""Graphs of well-known models without torch, for tests and benchmarks."""

from __future__ import annotations

import random

from jupyter_autotrain.parallel.graph.builder import Builder
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.graph.prepare import fold


def mlp(*, width: int, layers: int, batch: int, hidden: int = 0, dtype: str = "bfloat16") -> OpGraph:
    """`layers` pairs of linear layers width → hidden → width (hidden 4 x width unless given), summed to a loss."""
    b = Builder(f"mlp-{width}x{layers}", dtype)
    hidden = hidden or 4 * width
    x = b.input("x", batch, width)
    for i in range(layers):
        name = f"layers.{i}"
        x = linear(b, x, hidden, f"{name}.up")
        x = b.apply("relu", [x], (batch, hidden), f"{name}.relu")
        x = linear(b, x, width, f"{name}.down")
    b.apply("sum", [x], (), "loss")
    return fold(b.graph())


def gpt(
    *, width: int, layers: int, heads: int, sequence: int, batch: int, vocabulary: int, dtype: str = "bfloat16"
) -> OpGraph:
    """GPT-2: learned positions, fused query-key-value product, GELU, untied output head, next-token loss."""
    b = Builder(f"gpt-{width}x{layers}", dtype)
    shape = (batch, sequence, width)
    ids = b.input("input_ids", batch, sequence, dtype="int64")
    x = b.apply("embedding", [b.parameter("wte.weight", vocabulary, width), ids], shape, "wte")
    places = b.parameter("wpe.weight", 1, sequence, width)
    x = b.apply("add", [x, places], shape, "embed")
    for i in range(layers):
        x = _gpt_block(b, x, f"h.{i}", shape, heads)
    x = _norm(b, x, "ln_f")
    _next_token_loss(b, x, "lm_head", vocabulary)
    return fold(b.graph())


def llama(
    *,
    width: int,
    layers: int,
    heads: int,
    sequence: int,
    batch: int,
    vocabulary: int,
    key_value_heads: int = 0,
    hidden: int = 0,
    dtype: str = "bfloat16",
) -> OpGraph:
    """Llama: RMS norm, rotary positions, grouped key-value heads, gated SiLU (hidden 8/3 x width unless given)."""
    b = Builder(f"llama-{width}x{layers}", dtype)
    shape = (batch, sequence, width)
    ids = b.input("input_ids", batch, sequence, dtype="int64")
    x = b.apply("embedding", [b.parameter("embed_tokens.weight", vocabulary, width), ids], shape, "embed_tokens")
    for i in range(layers):
        x = _llama_attention(b, x, f"layers.{i}", shape, (heads, key_value_heads or heads))
        x = _llama_mlp(b, x, f"layers.{i}", hidden or -(-8 * width // 3 // 256) * 256)
    x = _norm(b, x, "norm", kind="rms_norm")
    _next_token_loss(b, x, "lm_head", vocabulary)
    return fold(b.graph())


def random_graph(seed: int, ops: int, *, fan_in: int = 2, width: int = 8, batch: int = 8) -> OpGraph:
    """Return a connected random graph of additions, ReLUs, products and row softmaxes on (batch, width) tensors.

    Args:
        seed: Same seed, same graph.
        ops: Number of ops.
        fan_in: Most inputs an addition takes.
        width: Feature width of every tensor.
        batch: Rows of every tensor.
    """
    draw = random.Random(seed)
    b = Builder(f"random-{seed}", "float32")
    shape = (batch, width)
    made = [b.input("x", batch, width)]
    for i in range(ops):
        kind = draw.choice(("linear", "linear", "relu", "add", "_softmax"))
        latest = made[max(0, len(made) - 4) :]
        inputs = [made[-1], *draw.sample(latest[:-1], min(fan_in - 1, len(latest) - 1))]
        if kind == "linear":
            made.append(linear(b, draw.choice(latest), width, f"op{i}"))
        elif kind == "add" and len(inputs) > 1:
            total = inputs[0]
            made.append(
                b.apply("addcmul", inputs, shape, f"op{i}")
                if len(inputs) > 2
                else b.apply("add", [total, inputs[1]], shape, f"op{i}")
            )
        else:
            made.append(b.apply("relu" if kind == "add" else kind, [draw.choice(latest)], shape, f"op{i}", dim=-1))
    return b.graph()


def linear(b: Builder, x: int, out: int, name: str, *, bias: bool = True) -> int:
    """One linear layer with its parameters; returns the output's id."""
    shape = b.tensors[x].shape
    inputs = [x, b.parameter(f"{name}.weight", out, shape[-1]), *([b.parameter(f"{name}.bias", out)] if bias else [])]
    return b.apply("linear", inputs, (*shape[:-1], out), name)


def _norm(b: Builder, x: int, name: str, kind: str = "native_layer_norm") -> int:
    shape = b.tensors[x].shape
    inputs = [x, b.parameter(f"{name}.weight", shape[-1])]
    if kind == "native_layer_norm":
        inputs.append(b.parameter(f"{name}.bias", shape[-1]))
    return b.apply(kind, inputs, shape, name, normalized_shape=[shape[-1]])


def _heads(b: Builder, x: int, name: str, heads: int) -> int:
    """(batch, sequence, width) to (batch, heads, sequence, head width)."""
    batch, sequence, width = b.tensors[x].shape
    x = b.apply("view", [x], (batch, sequence, heads, width // heads), f"{name}.view")
    return b.apply("transpose", [x], (batch, heads, sequence, width // heads), f"{name}.transpose", dim0=1, dim1=2)


def _merge(b: Builder, x: int, name: str) -> int:
    """Return the way back."""
    batch, heads, sequence, width = b.tensors[x].shape
    x = b.apply("transpose", [x], (batch, sequence, heads, width), f"{name}.transpose", dim0=1, dim1=2)
    return b.apply("view", [x], (batch, sequence, heads * width), f"{name}.view")


def _gpt_block(b: Builder, x: int, name: str, shape: tuple[int, int, int], heads: int) -> int:
    width = shape[-1]
    fused = linear(b, _norm(b, x, f"{name}.ln_1"), 3 * width, f"{name}.attn.c_attn")
    parts = b.split("split", [fused], [shape] * 3, f"{name}.attn.split", dim=2)
    q, k, v = (_heads(b, part, f"{name}.attn", heads) for part in parts)
    y = _merge(b, b.apply("attention", [q, k, v], b.tensors[q].shape, f"{name}.attn.attention"), f"{name}.attn.merge")
    y = linear(b, y, width, f"{name}.attn.c_proj")
    x = b.apply("add", [y, x], shape, f"{name}.add")
    y = linear(b, _norm(b, x, f"{name}.ln_2"), 4 * width, f"{name}.mlp.c_fc")
    y = b.apply("gelu", [y], b.tensors[y].shape, f"{name}.mlp.act")
    y = linear(b, y, width, f"{name}.mlp.c_proj")
    return b.apply("add", [x, y], shape, f"{name}.add")


def _llama_attention(b: Builder, x: int, name: str, shape: tuple[int, int, int], heads: tuple[int, int]) -> int:
    width = shape[-1]
    (count, groups) = heads
    y = _norm(b, x, f"{name}.input_layernorm", kind="rms_norm")
    attention = f"{name}.self_attn"
    sizes = {"q": count, "k": groups, "v": groups}
    q, k, v = (
        _heads(b, linear(b, y, width // count * n, f"{attention}.{p}_proj", bias=False), f"{attention}.{p}", n)
        for p, n in sizes.items()
    )
    q, k = (b.apply("rotary", [t], b.tensors[t].shape, f"{attention}.rotary", dim=-1) for t in (q, k))
    y = _merge(b, b.apply("attention", [q, k, v], b.tensors[q].shape, f"{attention}.attention"), f"{attention}.merge")
    y = linear(b, y, width, f"{attention}.o_proj", bias=False)
    return b.apply("add", [x, y], shape, f"{name}.add")


def _llama_mlp(b: Builder, x: int, name: str, hidden: int) -> int:
    shape = b.tensors[x].shape
    y = _norm(b, x, f"{name}.post_attention_layernorm", kind="rms_norm")
    gate = linear(b, y, hidden, f"{name}.mlp.gate_proj", bias=False)
    gate = b.apply("silu", [gate], b.tensors[gate].shape, f"{name}.mlp.act")
    up = linear(b, y, hidden, f"{name}.mlp.up_proj", bias=False)
    y = b.apply("mul", [gate, up], b.tensors[up].shape, f"{name}.mlp.mul")
    y = linear(b, y, shape[-1], f"{name}.mlp.down_proj", bias=False)
    return b.apply("add", [x, y], shape, f"{name}.add")


def _next_token_loss(b: Builder, x: int, name: str, vocabulary: int) -> None:
    logits = linear(b, x, vocabulary, name, bias=False)
    batch, sequence, _ = b.tensors[logits].shape
    labels = b.input("labels", batch * sequence, dtype="int64")
    flat = b.apply("view", [logits], (batch * sequence, vocabulary), "loss.view")
    rows = b.apply("_log_softmax", [flat], (batch * sequence, vocabulary), "loss.log_softmax", dim=1)
    b.apply("nll_loss_forward", [rows, labels], (), "loss.nll_loss")
