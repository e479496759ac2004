"""The processes that run a plan together: their device, their mesh, and random numbers of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.recipe import ExpertRecipe, Recipe

DATA = "data"
REPLICA = "replica"
TENSOR = "tensor"
PIPELINE = "pipeline"
EXPERT = "expert"
SAMPLES = "samples"


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
        pipeline: Those that have the stages of the same samples; None where each runs the whole model.
        experts: Those with samples of their own as two axes: by those that have the same experts (with replicas: two
            axes of these), and by those that share them out; None where each has all experts.
    """

    rank: int
    count: int
    device: torch.device
    mesh: DeviceMesh | None
    tensor: DeviceMesh | None = None
    pipeline: DeviceMesh | None = None
    experts: DeviceMesh | None = None

    @property
    def are_alone(self) -> bool:
        """True for one process, which needs no group."""
        return self.count == 1

    @property
    def sharers(self) -> int:
        """Return how many ranks share the layers of this one."""
        return self.tensor.size() if self.tensor else 1

    @property
    def with_same_experts(self) -> DeviceMesh | None:
        """Return those that have the experts of this one: one axis, or replicas by shards."""
        if self.experts is None:
            return None
        return self.experts[REPLICA, DATA] if REPLICA in (self.experts.mesh_dim_names or ()) else self.experts[DATA]

    @property
    def samples(self) -> int:
        """Return into how many parts a batch is cut, one for each rank with samples of its own."""
        return self.mesh.size() if self.mesh else 1

    @property
    def sample_rank(self) -> int:
        """Return which of these parts this rank has: stages are the outermost axis, a tensor axis the innermost."""
        return self.rank // self.sharers % self.samples

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


def random_state() -> dict[str, Any]:
    """Return the states of this process's generators."""
    cuda = torch.cuda.get_rng_state() if torch.cuda.is_available() else None
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def set_random_state(state: dict[str, Any]) -> None:
    """Let the generators go on from a state."""
    torch.set_rng_state(state["cpu"])
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def _has_group() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _device(environment: Mapping[str, str]) -> torch.device:
    """Return the GPU of this process, chosen by its local rank, or the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(environment.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def _meshes(recipe: Recipe, device: str) -> tuple[DeviceMesh | None, ...]:
    """Return the meshes of the ranks with samples of their own, of those that share layers, of stages, and experts."""
    if recipe.experts:
        return _meshes_of_experts(recipe, recipe.experts, device)
    axes = {
        PIPELINE: recipe.pipeline.stages if recipe.pipeline else 0,
        REPLICA: recipe.replicas if recipe.replicas > 1 else 0,
        DATA: recipe.samples // recipe.replicas if recipe.samples > 1 else 0,
        TENSOR: recipe.tensor.ranks if recipe.tensor else 0,
    }
    open_axes = {name: size for name, size in axes.items() if size}
    whole = init_device_mesh(device, tuple(open_axes.values()), mesh_dim_names=tuple(open_axes))
    names = tuple(name for name in (REPLICA, DATA) if name in open_axes)
    if names == tuple(open_axes):
        return whole, None, None
    return (
        whole[names] if names else None,
        whole[TENSOR] if recipe.tensor else None,
        whole[PIPELINE] if recipe.pipeline else None,
    )


def _meshes_of_experts(recipe: Recipe, experts: ExpertRecipe, device: str) -> tuple[DeviceMesh | None, ...]:
    """Return what `_meshes` does, where ranks share out experts: each replica has all of them."""
    sharers = recipe.samples // recipe.replicas // experts.ranks
    sizes = {REPLICA: recipe.replicas, DATA: sharers, EXPERT: experts.ranks}
    if recipe.replicas == 1:
        del sizes[REPLICA]
    whole = init_device_mesh(device, tuple(sizes.values()), mesh_dim_names=tuple(sizes))
    flat = whole[DATA, EXPERT]._flatten(SAMPLES)  # noqa: SLF001 - torch has no public one
    return whole[REPLICA, SAMPLES] if REPLICA in sizes else flat, None, None, whole
