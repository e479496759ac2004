"""Weights over ranks: replicated (DDP), or shared out by FSDP2, whose switches give ZeRO-1, 2 and 3."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import torch
from torch import distributed, nn
from torch.distributed._composable.replicate import DDP, replicate
from torch.distributed._composable.replicate_with_fsdp import replicate as replicate_split
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.nn.modules.batchnorm import _BatchNorm

from jupyter_autotrain.parallel.apply.ranks import Ranks
from jupyter_autotrain.parallel.apply.recipe import Recipe
from jupyter_autotrain.parallel.apply.tensor import share_layers
from jupyter_autotrain.parallel.cost.memory import ZeroLevel

_VIEW: Final = "FSDP2-wrapped module .* returned a view tensor"


@dataclass(frozen=True, slots=True)
class Synchronization:
    """The exchange of a model's ranks in a microbatch.

    Attributes:
        replicated: The whole model, where ranks hold replicas.
        groups: Modules whose weights are sharded together, each with its level.
    """

    replicated: DDP | None = None
    groups: tuple[tuple[FSDPModule, ZeroLevel], ...] = ()

    def set_last(self, *, last: bool) -> None:
        """Prepare for a microbatch: the last one of a step, or one before it.

        Below ZeRO-2 gradients are exchanged with the last one only; below ZeRO-3 weights stay gathered until then.
        """
        if self.replicated is not None:
            self.replicated.set_requires_gradient_sync(last)
        for module, level in self.groups:
            shares_gradients = level >= ZeroLevel.GRADIENTS
            module.set_requires_gradient_sync(last or shares_gradients, recurse=False)
            module.set_reshard_after_backward(last or level is ZeroLevel.PARAMETERS, recurse=False)
            module.set_is_last_backward(last)


def spread(model: nn.Module, recipe: Recipe, ranks: Ranks) -> Synchronization:
    """Split, replicate or shard a model's weights in place, those of rank 0; the model keeps its class and names."""
    if ranks.are_alone:
        return Synchronization()
    _copy_from_rank_0(model)
    if recipe.tensor and ranks.tensor:
        share_layers(model, recipe.tensor, ranks.tensor)
        warnings.filterwarnings("ignore", _VIEW)  # autograd itself refuses to change such a view in place
    if ranks.mesh is None:
        return Synchronization()
    if recipe.zero is ZeroLevel.NONE and recipe.tensor is None:
        skipped = any(p.requires_grad and name not in recipe.weights for name, p in model.named_parameters())
        replicated = replicate(model, device_mesh=ranks.mesh, find_unused_parameters=skipped)
        return Synchronization(cast("DDP", replicated))
    return Synchronization(groups=tuple(_sharded(model, recipe, ranks)))


def _copy_from_rank_0(model: nn.Module) -> None:
    """Make the ranks start from the same weights and buffers, however each has seeded itself."""
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            distributed.broadcast(tensor, src=0)


def _sharded(model: nn.Module, recipe: Recipe, ranks: Ranks) -> Iterator[tuple[FSDPModule, ZeroLevel]]:
    """Shard layer by layer, then what is left, and yield each group; 16-bit weights become shards of 32 bits."""
    policy = MixedPrecisionPolicy()
    if recipe.compute:
        policy = MixedPrecisionPolicy(param_dtype=getattr(torch, recipe.compute))
        model.float()
    groups = [(model.get_submodule(layer.path), layer.zero) for layer in recipe.layers]
    for module, level in (*groups, (model, recipe.zero)):
        if recipe.zero is ZeroLevel.NONE:  # DDP knows no split weights
            yield replicate_split(module, mesh=ranks.mesh, mp_policy=policy), level
            continue
        free = level is ZeroLevel.PARAMETERS
        yield fully_shard(module, mesh=ranks.mesh, reshard_after_forward=free, mp_policy=policy), level


def share_batch_statistics(model: nn.Module, ranks: Ranks) -> tuple[nn.Module, str]:
    """Return the model with batch statistics over all ranks, and what a reader must know where torch cannot do it."""
    names = [name for name, module in model.named_modules() if isinstance(module, _BatchNorm)]
    if ranks.mesh is None or not names:
        return model, ""
    if ranks.device.type != "cpu":
        return nn.SyncBatchNorm.convert_sync_batchnorm(model), ""  # type: ignore[no-untyped-call] # torch's
    return model, (
        f"Batch statistics of {names[0]}{f' and {len(names) - 1} more' if names[1:] else ''} are of each rank's own "
        "samples: torch synchronizes them on GPUs only. Losses differ from those of one process."
    )
