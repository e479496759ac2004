"""Experts of mixtures shared out over an axis: tokens go to the rank that has their expert, and come back.

Each rank of the axis has samples of its own, and some of the experts of each mixture. A token's row is sent once for
each expert that the router has chosen (all-to-all), the module's own forward pass runs on what arrives, and what it
makes is sent back and weighted where the token came from, so that the router's gradient stays there (Lepikhin et al.
2020). The model keeps its class, its structure and its names.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import distributed, nn
from torch.distributed._functional_collectives import all_to_all_single_autograd
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from jupyter_autotrain.parallel.apply.recipe import ExpertRecipe
from jupyter_autotrain.parallel.apply.tensor import in_place

_ROUTED: Final = 3  # arguments of the forward pass: tokens, numbers of their experts, and weights of these


def can_share(module: nn.Module) -> bool:
    """Return whether a module holds experts in stacked weights alone, and runs tokens through those chosen for them."""
    count = getattr(module, "num_experts", None)
    stacked = list(module.parameters())
    has_all = bool(stacked) and all(p.dim() > 1 and p.shape[0] == count for p in stacked)
    return has_all and len(inspect.signature(module.forward).parameters) == _ROUTED


def share_experts(model: nn.Module, recipe: ExpertRecipe, mesh: DeviceMesh) -> None:
    """Leave each rank of an axis its own experts of each mixture.

    Args:
        model: The model, with the same weights on all ranks.
        recipe: Which modules hold experts, each a number of them that the axis divides.
        mesh: The axis.
    """
    for path in recipe.modules:
        module: Any = model.get_submodule(path)
        for name, stacked in list(module.named_parameters(recurse=False)):
            own = distribute_tensor(stacked.detach(), mesh, [Shard(0)], src_data_rank=None)
            setattr(module, name, nn.Parameter(own, requires_grad=stacked.requires_grad))
        module.num_experts //= mesh.size()
        module.forward = _exchanging(module, mesh)


def shard_beside(ranks: int) -> Callable[[nn.Parameter], Shard]:
    """Return what chooses the dimension that data ranks shard of stacked weights: one after that of the experts."""

    def choose(stacked: nn.Parameter) -> Shard:
        return Shard(next(dim for dim in range(1, stacked.ndim) if stacked.shape[dim] % ranks == 0))

    return choose


def _exchanging(module: Any, mesh: DeviceMesh) -> Callable[..., torch.Tensor]:  # noqa: ANN401 - a module with a number of experts
    """Return the forward pass of a mixture of which this rank has some experts."""
    forward = module.forward
    words_of = inspect.signature(forward)

    def run(*args: Any, **words: Any) -> torch.Tensor:  # noqa: ANN401 - as the module's own
        hidden, index, weights = words_of.bind(*args, **words).arguments.values()
        rows = hidden.reshape(-1, hidden.shape[-1])
        order = index.flatten().argsort(stable=True)
        sent, received = _counts(index, module.num_experts, mesh)
        there = received.sum(1).tolist()
        back = sent.sum(1).tolist()
        arrived = all_to_all_single_autograd(rows[order // index.shape[-1]], there, back, mesh)
        made = all_to_all_single_autograd(_own_experts(module, forward, arrived, received), back, there, mesh)
        by_choice = made[order.argsort()].view(*hidden.shape[:-1], -1, hidden.shape[-1])
        shares = weights.reshape(*by_choice.shape[:-1], 1)
        made_of_all: torch.Tensor = (by_choice * shares).sum(-2)  # no view, which sharding does not follow
        return made_of_all.to(hidden.dtype)

    return functools.update_wrapper(run, forward)


def _counts(index: torch.Tensor, experts: int, mesh: DeviceMesh) -> tuple[torch.Tensor, torch.Tensor]:
    """Return how many rows this rank sends to each rank's experts, and gets from each rank for its own ones."""
    sent = torch.bincount(index.flatten(), minlength=experts * mesh.size()).view(mesh.size(), experts)
    received = sent.clone()
    distributed.all_to_all_single(received, sent, group=mesh.get_group())
    return sent, received


def _own_experts(
    module: Any,  # noqa: ANN401 - as above
    forward: Callable[..., torch.Tensor],
    arrived: torch.Tensor,
    received: torch.Tensor,
) -> torch.Tensor:
    """Run rows, sorted by rank and expert, through the experts of this rank.

    One row more goes along and is dropped: a rank without tokens has gradients, too, which others wait for.
    """
    ranks, experts = received.shape
    numbers = torch.arange(experts, device=arrived.device).repeat(ranks).repeat_interleave(received.flatten())
    rows = nn.functional.pad(arrived, (0, 0, 0, 1))
    chosen = nn.functional.pad(numbers, (0, 1)).unsqueeze(-1)
    stacks = {name: _averaged(stacked, ranks) for name, stacked in module.named_parameters(recurse=False)}
    with in_place(module, stacks):
        return forward(rows, chosen, torch.ones_like(chosen, dtype=rows.dtype))[:-1]


def _averaged(stacked: torch.Tensor, ranks: int) -> torch.Tensor:
    """Return this rank's experts, whose gradient is the mean over the ranks whose tokens they see."""
    own = stacked.to_local() if isinstance(stacked, DTensor) else stacked
    if own.requires_grad:
        own.register_hook(lambda gradient: gradient / ranks)  # type: ignore[no-untyped-call] # torch's
    return own
