"""Attention, and the grouped product of experts, each as one op that only has shapes."""

from __future__ import annotations

import torch

from jupyter_autotrain.parallel.trace.internals import Passed
from jupyter_autotrain.parallel.trace.traced_ops import TracedOp


class GroupedProduct(torch.autograd.Function):
    """`out[t, n] = sum_k tokens[t, k] weight[expert of t, k, n]`, rows sorted by expert."""

    @staticmethod
    def forward(ctx: Passed, tokens: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Output of shape (tokens, width)."""
        ctx.save_for_backward(tokens, weight)
        return tokens.new_empty(tokens.shape[0], weight.shape[-1])

    @staticmethod
    def backward(ctx: Passed, *_grads: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Gradients of the two inputs."""
        tokens, weight = ctx.saved_tensors
        return torch.empty_like(tokens), torch.empty_like(weight)


def grouped_costs(tokens: torch.Tensor, weight: torch.Tensor) -> tuple[float, float]:
    """FLOPs and bytes of the forward product; the backward pass is two such products."""
    rows, depth = tokens.shape
    width = weight.shape[-1]
    moved = (rows * (depth + width) + weight.numel()) * tokens.element_size()
    return 2.0 * rows * depth * width, float(moved)


BACKWARD = 2.5
"""Backward over forward: the scores again, then two products each for values and scores (FlashAttention-2, sec. 3)."""


UNFUSED_SCORES = 3
"""Tables of scores that attention with dropout keeps in torch's plain kernels: softmax, mask, and their product."""


class Attention(torch.autograd.Function):
    """Fused attention on shapes: keeps queries, keys, values, output and one float per row of scores."""

    @staticmethod
    def forward(ctx: Passed, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Output of shape (..., heads, rows, value width), laid out as kernels do: rows outside heads."""
        *batch, heads, rows, _ = query.shape
        out = query.new_empty(*batch, rows, heads, value.shape[-1]).transpose(-3, -2)
        statistics = query.new_empty(*batch, heads, rows, dtype=torch.float32)
        ctx.save_for_backward(query, key, value, out, statistics)
        return out

    @staticmethod
    def backward(ctx: Passed, *_grads: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Gradients of the three inputs."""
        query, key, value, *_ = ctx.saved_tensors
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def attend(
    record: TracedOp | None,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout_p: float = 0.0,
) -> torch.Tensor:
    """Stand in for `scaled_dot_product_attention` and give the record its costs.

    FLOPs: 2 per multiply-add of both products over all scores; a causal mask does not lower the count, as in
    torch's own counter. Bytes: each operand once, no scores, as fused kernels do.
    """
    out: torch.Tensor = Attention.apply(query, key, value)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    if record is not None:
        pairs = query.numel() // query.shape[-1] * key.shape[-2]
        operands = [query, key, value, out, *([] if mask is None else [mask])]
        moved = sum(t.numel() * t.element_size() for t in operands)
        record.exact = True
        record.flops_forward = 2.0 * pairs * (query.shape[-1] + value.shape[-1])
        record.flops_backward = BACKWARD * record.flops_forward
        record.bytes_forward = moved
        record.bytes_backward = 2.0 * moved
        if dropout_p > 0:
            record.unfused_extra_bytes = UNFUSED_SCORES * pairs * query.element_size()
    return out
