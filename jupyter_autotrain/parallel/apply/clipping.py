"""Gradients clipped by their norm over all ranks, however each weight is spread over them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import torch
from torch import distributed, nn
from torch.distributed.tensor import DTensor

_LEAST = 1e-6  # as in torch.nn.utils.clip_grad_norm_: no division by zero


def clip(weights: Iterable[nn.Parameter], max_norm: float) -> None:
    """Scale gradients in place so that their common norm is at most `max_norm`; one collective."""
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    if not gradients:
        return
    ranks = distributed.get_world_size() if distributed.is_initialized() else 1
    squares = [local(gradient).float().square().sum() * (_shards(gradient) / ranks) for gradient in gradients]
    total = torch.stack(squares).sum()
    if ranks > 1:
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
