"""Activations between the layouts of a tensor axis: the collectives of its forward pass, and of their gradients.

A step that gathers in the forward pass scatters in the backward pass, and the other way round (Shoeybi et al. 2019;
Korthikanti et al. 2022). torch's `DTensor` knows which; between two steps activations are plain tensors of a rank.
"""

from __future__ import annotations

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.recipe import Layout


def moved(
    x: torch.Tensor, mesh: DeviceMesh, comes: Layout, goes: Layout, *, gradient: Layout | None = None
) -> torch.Tensor:
    """Return an activation in another layout.

    Args:
        x: What this rank has of it.
        mesh: The tensor axis.
        comes: Layout of `x`.
        goes: Layout of the result.
        gradient: Layout in which the gradient of the result comes back; that of the result unless given.

    Raises:
        PlanError: The ranks cannot have equal numbers of positions.
    """
    if comes is goes and gradient in {None, goes}:
        return x
    if goes is Layout.POSITIONS:
        _check_positions(x.shape[1], mesh.size())
    of_all = DTensor.from_local(x, mesh, [_placement(comes, x)], run_check=False)
    there = of_all.redistribute(placements=[_placement(goes, x)])
    if goes is Layout.CLASSES:
        return there
    back = None if gradient is None else [_placement(gradient, x)]
    return there.to_local(grad_placements=back)


def summed(weight: torch.Tensor, mesh: DeviceMesh) -> torch.Tensor:
    """Return a weight whose gradient is the sum of what the ranks find."""
    return moved(weight, mesh, Layout.WHOLE, Layout.WHOLE, gradient=Layout.TERMS)


def _placement(layout: Layout, x: torch.Tensor) -> Placement:
    if layout in {Layout.FEATURES, Layout.CLASSES}:
        return Shard(x.ndim - 1)
    if layout is Layout.POSITIONS:
        return Shard(1)
    return Partial() if layout is Layout.TERMS else Replicate()


def _check_positions(positions: int, ranks: int) -> None:
    if positions % ranks:
        raise PlanError(
            f"{positions} positions cannot be split over {ranks} ranks.",
            "Sequences whose length the tensor axis divides.",
            f"Pad batches to multiples of {ranks}, or plan without sequence parallelism.",
        )
