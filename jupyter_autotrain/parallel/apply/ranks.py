"""The processes that run a plan together: their device, their mesh, and random numbers of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.recipe import Recipe

DATA = "data"
REPLICA = "replica"
TENSOR = "tensor"


@dataclass(frozen=True, slots=True)
class Ranks:
    """The processes of a plan as one of them sees them.

    Attributes:
        rank: Number of this one.
        count: How many there are.
        device: That of this one.
        mesh: Those that have samples of their own: one axis, or replicas by shards (HSDP); None where all have the
            same.
        tensor: Those that share layers, and have the same samples; None where each has all layers.
    """

    rank: int
    count: int
    device: torch.device
    mesh: DeviceMesh | None
    tensor: DeviceMesh | None = None

    @property
    def are_alone(self) -> bool:
        """True for one process, which needs no group."""
        return self.count == 1

    @property
    def sharers(self) -> int:
        """Return how many ranks have the same samples as this one."""
        return self.tensor.size() if self.tensor else 1

    def same(self, number: int) -> int:
        """Return rank 0's number on all ranks."""
        if self.are_alone:
            return number
        shared = torch.tensor([number], dtype=torch.int64, device=self.device)
        distributed.broadcast(shared, src=0)
        return int(shared.item())


def meet(recipe: Recipe, environment: Mapping[str, str] = os.environ) -> Ranks:
    """Return the processes that the launcher has started; their process group is made where there is none.

    Raises:
        PlanError: There are more or fewer than the plan is for, and not just one.
    """
    count = distributed.get_world_size() if _has_group() else int(environment.get("WORLD_SIZE", "1"))
    if count not in {1, recipe.ranks}:
        raise PlanError(
            f"The plan is for {recipe.ranks} processes, and {count} run.",
            "As many as the plan has devices, or one alone.",
            f"Start {recipe.ranks} (resources: {{workers_per_node: {recipe.ranks}}}), or plan for {count} devices.",
        )
    device = _device(environment)
    if count == 1:
        return Ranks(0, 1, device, None)
    meshes = _meshes(recipe, device.type)  # makes the process group where there is none
    return Ranks(distributed.get_rank(), count, device, *meshes)


def own_random_numbers(ranks: Ranks) -> None:
    """Give each rank's generator a seed of its own, so that ranks drop out other units; one process keeps its state.

    Ranks that share layers have the same seed: what all of them compute is to be equal. What each has a part of (heads,
    features, positions) loses the same units of each part.
    """
    if ranks.are_alone:
        return
    drawn = int(torch.randint(2**62, ()).item())
    torch.manual_seed(ranks.same(drawn) + ranks.rank // ranks.sharers)


def _has_group() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _device(environment: Mapping[str, str]) -> torch.device:
    """Return the GPU of this process, chosen by its local rank, or the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(environment.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def _meshes(recipe: Recipe, device: str) -> tuple[DeviceMesh | None, DeviceMesh | None]:
    """Return the mesh of the ranks with samples of their own, and that of the ranks that share layers."""
    names: tuple[str, ...] = (DATA,)
    shape: tuple[int, ...] = (recipe.samples,)
    if recipe.replicas > 1:
        names = (REPLICA, DATA)
        shape = (recipe.replicas, recipe.samples // recipe.replicas)
    if recipe.tensor is None:
        return init_device_mesh(device, shape, mesh_dim_names=names), None
    whole = init_device_mesh(device, (*shape, recipe.tensor.ranks), mesh_dim_names=(*names, TENSOR))
    return whole[names] if recipe.samples > 1 else None, whole[TENSOR]
