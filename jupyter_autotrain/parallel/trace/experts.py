"""The grouped product of a mixture of experts on shapes: every token is multiplied with one expert's matrix."""

from __future__ import annotations

import torch

from jupyter_autotrain.parallel.trace.internals import Passed


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
