"""Fused projections: several products in one weight, as queries, keys and values are, or gate and up.

A rank of a tensor axis has its share of each: its heads of the queries, of the keys and of the values, one after
another. The weight is one distributed tensor that knows where its rows belong; where the model cuts what the product
makes, it names places of the whole, which become those of the rank's share.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import nn
from torch.distributed._functional_collectives import all_gather_tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import Shard, _StridedShard

from jupyter_autotrain.errors import PlanError


class FusedShard(_StridedShard):
    """The placement of a weight of which each rank has its share of each part; torch's own knows equal parts alone.

    Args:
        dim: Along which the parts lie.
        sizes: Of the parts, each a multiple of the number of ranks.
    """

    sizes: tuple[int, ...]

    def __init__(self, dim: int, sizes: Sequence[int]) -> None:
        known = zlib.crc32(repr(tuple(sizes)).encode())  # by its number torch tells one placement from another
        super().__init__(dim, split_factor=2**20 + known)
        object.__setattr__(self, "sizes", tuple(sizes))

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies know the sizes."""
        return FusedShard, (self.dim, self.sizes)

    def distributed(self, whole: torch.Tensor, mesh: DeviceMesh) -> DTensor:
        """Return a weight that all ranks of an axis have as one of which each has its share."""
        own = self._split_tensor(whole, mesh.size())[0][mesh.get_local_rank()]
        return DTensor.from_local(own, mesh, [self], run_check=False, shape=whole.shape, stride=whole.stride())

    def _split_tensor(
        self,
        tensor: torch.Tensor,
        num_chunks: int,
        *,
        with_padding: bool = True,  # noqa: ARG002 - shares are of one size
        contiguous: bool = True,  # noqa: ARG002 - what is joined is contiguous
    ) -> tuple[list[torch.Tensor], list[int]]:
        parts = [part.chunk(num_chunks, self.dim) for part in tensor.split_with_sizes(self.sizes, self.dim)]
        return [torch.cat(shares, self.dim) for shares in zip(*parts, strict=True)], [0] * num_chunks

    def _to_replicate_tensor(
        self,
        local_tensor: torch.Tensor,
        mesh: DeviceMesh,
        mesh_dim: int,
        current_logical_shape: Sequence[Any],  # noqa: ARG002 - the sizes say it
    ) -> torch.Tensor:
        ranks = mesh.size(mesh_dim)
        gathered = all_gather_tensor(local_tensor.contiguous(), self.dim, (mesh, mesh_dim)).chunk(ranks, self.dim)
        sizes = [size // ranks for size in self.sizes]
        shares = [own.split_with_sizes(sizes, self.dim) for own in gathered]
        return torch.cat([torch.cat(part, self.dim) for part in zip(*shares, strict=True)], self.dim)


def shard_beside_parts(weight: nn.Parameter) -> Shard | None:
    """Return the dim along which data ranks share out a weight: not that along which its projections lie."""
    last = weight.placements[-1] if isinstance(weight, DTensor) else None
    return Shard(1) if isinstance(last, _StridedShard) and last.dim == 0 else None


class FusedOutput(torch.Tensor):
    """The output of a rank's share of a fused product, to be cut where the whole has the ends of its parts.

    Attributes:
        ends: Place in the whole, as the model names it → that in this share.
    """

    ends: Mapping[int, int]

    @classmethod
    def of(cls, made: torch.Tensor, sizes: Sequence[int], ranks: int) -> FusedOutput:
        """Return what a product has made, of parts whose sizes in the whole are given."""
        fused = made.as_subclass(cls)
        fused.ends = {end: end // ranks for end in (0, *accumulate(sizes))}
        return fused

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 - as torch has it
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - as torch has it
        """Run an op on the share as a plain tensor, with places of the whole made those of the share."""
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - as torch documents it for subclasses
            if isinstance(args[0], FusedOutput) and func in {torch.Tensor.__getitem__, torch.Tensor.split, torch.split}:
                moved = args[0]._cut if func is torch.Tensor.__getitem__ else args[0]._parted  # noqa: SLF001 - its own
                args = (args[0], *moved(*args[1:], **(kwargs or {})))
                kwargs = {}
            return func(*args, **(kwargs or {}))

    def _cut(self, index: Any) -> tuple[Any]:  # noqa: ANN401 - whatever tensors are indexed by
        """Return an index, whose last slice is of the features."""
        if not isinstance(index, tuple) or not isinstance(index[-1], slice):
            return (index,)
        if Ellipsis not in index and len(index) < self.ndim:
            return (index,)
        last = index[-1]
        return ((*index[:-1], slice(self._place(last.start), self._place(last.stop), last.step)),)

    def _parted(self, split_size: int | Sequence[int], dim: int = 0) -> tuple[Any, int]:
        """Return the arguments of a split into parts."""
        if dim not in {-1, self.ndim - 1}:
            return split_size, dim
        whole = max(self.ends)
        sizes = [split_size] * (whole // split_size) if isinstance(split_size, int) else list(split_size)
        places = [self._place(end) or 0 for end in (0, *accumulate(sizes))]
        return [after - before for before, after in pairwise(places)], dim

    def _place(self, end: int | None) -> int | None:
        if end is None:
            return None
        at = end + max(self.ends) if end < 0 else end
        if at not in self.ends:
            raise PlanError(
                f"The output of a fused projection is cut at {end}.",
                f"Cuts where its parts end ({', '.join(map(str, self.ends))}), as when it was planned.",
                "Plan again for the model as it is now.",
            )
        return self.ends[at]
