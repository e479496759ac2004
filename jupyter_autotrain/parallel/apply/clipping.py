"""Gradients clipped by their norm over all ranks, however each weight is spread over them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from math import prod

import torch
from torch import distributed, nn
from torch.distributed.tensor import DTensor

_LEAST = 1e-6  # as in torch.nn.utils.clip_grad_norm_: no division by zero


def clip(
    weights: Iterable[nn.Parameter], max_norm: float, *, stages: int = 1, tied: Set[nn.Parameter] = frozenset()
) -> None:
    """Scale gradients in place so that their common norm is at most `max_norm`; one collective.

    Args:
        weights: Those of this rank.
        max_norm: Norm of the gradients of all ranks.
        stages: Pipeline stages, each with weights of its own.
        tied: Weights that two stages have a copy of each.
    """
    world = distributed.get_world_size() if distributed.is_initialized() else 1
    gradients: list[torch.Tensor] = []
    squares = [torch.zeros(())]
    for weight in weights:
        if weight.grad is not None:
            copies = world / stages / _shards(weight.grad) * (2 if weight in tied else 1)
            squares.append(local(weight.grad).float().square().sum() / copies)
            gradients.append(weight.grad)
    total = torch.stack([square.to(squares[-1].device) for square in squares]).sum()
    if world > 1:
        distributed.all_reduce(total)
    factor = (max_norm / (total.sqrt() + _LEAST)).clamp(max=1.0)
    for gradient in gradients:
        local(gradient).mul_(factor.to(gradient.dtype))


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Return what this rank has of a tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _shards(tensor: torch.Tensor) -> int:
    """Return into how many parts a tensor is split; the other ranks have copies of them."""
    if not isinstance(tensor, DTensor):
        return 1
    sizes = zip(tensor.device_mesh.shape, tensor.placements, strict=True)
    return prod(size for size, placement in sizes if not placement.is_replicate())
