"""The part of each weight that a rank has, as slices of the whole: what is read or drawn of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import torch
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import Placement, Shard, _StridedShard

from jupyter_autotrain.parallel.apply.fused import FusedShard
from jupyter_autotrain.parallel.apply.ranks import TENSOR

Where: TypeAlias = tuple[tuple[slice, ...], ...]
"""For each dim, the stretches that a rank has, in their order."""


def where_of(weight: torch.Tensor) -> Where:
    """Return the part of a weight that this rank has: all of it where it is not distributed.

    A tensor axis is the innermost of a mesh, and splits first; data axes share out what a rank of it has.
    """
    indices = [torch.arange(size) for size in weight.shape]
    if isinstance(weight, DTensor):
        mesh = weight.device_mesh
        place = mesh.get_coordinate()
        assert place is not None
        names = mesh.mesh_dim_names or ("",) * mesh.ndim
        for axis in reversed(range(mesh.ndim)):
            placement = weight.placements[axis]
            if isinstance(placement, Shard | _StridedShard):
                whole = indices[placement.dim]
                parts = _parts(placement, whole) if names[axis] == TENSOR else (whole,)
                indices[placement.dim] = _split(parts, mesh.size(axis), place[axis])
    return tuple(_stretches(own.tolist()) for own in indices)


def spread_as(tensor: torch.Tensor, here: DTensor) -> DTensor:
    """Return a tensor that all ranks have in the pieces in which they have another."""
    own = part_of(tensor, where_of(here)).contiguous()
    return DTensor.from_local(
        own, here.device_mesh, here.placements, run_check=False, shape=here.shape, stride=here.stride()
    )


def part_of(tensor: Any, where: Where) -> torch.Tensor:  # noqa: ANN401 - a tensor, or what reads slices of one
    """Return some stretches of a tensor, joined."""
    return _joined(tensor, where, ())


def _joined(tensor: Any, where: Where, chosen: tuple[slice, ...]) -> torch.Tensor:  # noqa: ANN401 - as above
    dim = len(chosen)
    if dim == len(where):
        part: torch.Tensor = tensor[chosen]
        return part
    parts = [_joined(tensor, where, (*chosen, stretch)) for stretch in where[dim]]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)


def _parts(placement: Placement, whole: torch.Tensor) -> Sequence[torch.Tensor]:
    """Return the projections in a weight of which a rank has its share of each."""
    if isinstance(placement, FusedShard):
        return whole.split_with_sizes(placement.sizes)
    return whole.chunk(int(placement.split_factor)) if isinstance(placement, _StridedShard) else (whole,)


def _split(parts: Sequence[torch.Tensor], ranks: int, rank: int) -> torch.Tensor:
    """Return a rank's share of each part; ranks after the last share have none."""
    shares = [part.chunk(ranks) for part in parts]
    return torch.cat([share[rank] if rank < len(share) else share[0][:0] for share in shares])


def _stretches(own: Sequence[int]) -> tuple[slice, ...]:
    """Return indices as stretches of consecutive ones; one that is empty for none."""
    ends = [at for at in range(1, len(own)) if own[at] != own[at - 1] + 1]
    cuts = [0, *ends, len(own)]
    if not own:
        return (slice(0, 0),)
    return tuple(slice(own[first], own[last - 1] + 1) for first, last in pairwise(cuts))
