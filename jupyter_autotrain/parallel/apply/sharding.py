"""Weights over ranks: replicated (DDP), or shared out by FSDP2, whose switches give ZeRO-1, 2 and 3."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import torch
from torch import distributed, nn
from torch.distributed._composable.replicate import DDP, replicate
from torch.distributed._composable.replicate_with_fsdp import replicate as replicate_split
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.nn.modules.batchnorm import _BatchNorm

from jupyter_autotrain.parallel.apply.clipping import local
from jupyter_autotrain.parallel.apply.experts import shard_beside, share_experts
from jupyter_autotrain.parallel.apply.fused import shard_beside_parts
from jupyter_autotrain.parallel.apply.ranks import EXPERT, Ranks
from jupyter_autotrain.parallel.apply.recipe import Recipe
from jupyter_autotrain.parallel.apply.stages import Tied, groups_of, keep_parts, parts_of
from jupyter_autotrain.parallel.apply.tensor import share_layers
from jupyter_autotrain.parallel.cost.memory import ZeroLevel

_VIEW: Final = "FSDP2-wrapped module .* returned a view tensor"


@dataclass(frozen=True, slots=True)
class Synchronization:
    """The exchange of a model's ranks in a microbatch.

    Attributes:
        replicated: The whole model, where ranks hold replicas.
        groups: Modules whose weights are sharded together, each with its level.
        parts: Part of a pipeline → the groups of it alone.
        tied: Weights that another stage has a copy of.
        stages: Of a pipeline, each with weights of its own.
    """

    replicated: DDP | None = None
    groups: tuple[tuple[FSDPModule, ZeroLevel], ...] = ()
    parts: Mapping[int, Synchronization] = field(default_factory=dict)
    tied: tuple[tuple[nn.Parameter, Tied], ...] = ()
    stages: int = 1

    @property
    def names(self) -> dict[str, str]:
        """Names of tied weights on this rank → those in the whole model."""
        return {tied.name: tied.whole_name for _, tied in self.tied}

    def sum_tied(self) -> None:
        """Give both copies of a tied weight the gradients of both."""
        for weight, tied in self.tied:
            if weight.requires_grad:
                if weight.grad is None:
                    weight.grad = torch.zeros_like(weight)
                distributed.all_reduce(local(weight.grad), group=tied.group)

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


def spread(
    model: nn.Module, recipe: Recipe, ranks: Ranks, fill: Callable[[nn.Module], None] | None = None
) -> Synchronization:
    """Split, replicate or shard a model's weights in place; the model keeps its class and names.

    Args:
        model: With the values of rank 0, or on the meta device.
        recipe: How its weights are spread.
        ranks: All ranks.
        fill: Gives the weights of this rank their values, where the model is on the meta device.
    """
    if fill is None and not ranks.are_alone:
        copy_from_rank_0(model, ranks.device)
    tied = keep_parts(model, recipe.pipeline, ranks) if recipe.pipeline and not ranks.are_alone else ()
    if fill is None:
        model.to(ranks.device)
    if recipe.tensor and ranks.tensor:
        share_layers(model, recipe.tensor, ranks.tensor, staged=recipe.pipeline is not None)
        warnings.filterwarnings("ignore", _VIEW)  # autograd itself refuses to change such a view in place
    if recipe.experts and ranks.experts:
        share_experts(model, recipe.experts, ranks.experts[EXPERT])
    if recipe.pipeline and not ranks.are_alone:
        return spread_parts(model, recipe, ranks, tied, fill)
    return _spread_whole(model, recipe, ranks, fill)


def _spread_whole(
    model: nn.Module, recipe: Recipe, ranks: Ranks, fill: Callable[[nn.Module], None] | None
) -> Synchronization:
    """Spread the weights of a model that each rank runs from end to end."""
    replicates = recipe.zero is ZeroLevel.NONE and recipe.tensor is None and recipe.experts is None
    groups: list[tuple[FSDPModule, ZeroLevel]] = []
    if ranks.mesh and not replicates:
        mixtures = [(model.get_submodule(path), recipe.zero) for path in recipe.mixtures]
        layers = [(model.get_submodule(layer.path), layer.zero) for layer in recipe.layers]
        groups = list(_sharded(model, [*mixtures, *layers, (model, recipe.zero)], recipe, ranks))
    if fill:
        fill(model)
    if ranks.mesh is None or not replicates:
        return Synchronization(groups=tuple(groups))
    skipped = any(p.requires_grad and name not in recipe.weights for name, p in model.named_parameters())
    replicated = replicate(model, device_mesh=ranks.mesh, find_unused_parameters=skipped)
    return Synchronization(cast("DDP", replicated))


def copy_from_rank_0(model: nn.Module, device: torch.device) -> None:
    """Make the ranks start from the same weights and buffers, however each has seeded itself."""
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            same = tensor.to(device)
            distributed.broadcast(same, src=0)
            if same is not tensor:
                tensor.copy_(same)


def spread_parts(
    model: nn.Module,
    recipe: Recipe,
    ranks: Ranks,
    tied: Iterable[Tied],
    fill: Callable[[nn.Module], None] | None = None,
) -> Synchronization:
    """Spread the weights that this rank has kept over the ranks that have the same stage; then fill them."""
    pipeline = recipe.pipeline
    assert pipeline is not None
    before = dict(model.named_parameters(remove_duplicate=False))
    parts: dict[int, Synchronization] = {}
    for part in parts_of(pipeline, ranks):
        paths = [pipeline.layers[number] for number in pipeline.layers_of(part)]
        paths += [*pipeline.first] if part == 0 else []
        paths += [*pipeline.last] if part == pipeline.parts - 1 else []
        groups = [(module, recipe.zero) for module in groups_of(model, paths)]
        parts[part] = Synchronization(groups=tuple(_sharded(model, groups, recipe, ranks) if ranks.mesh else ()))
    _tie_again(model, before)
    if fill:
        fill(model)
    every = [group for part in parts.values() for group in part.groups]
    held = tuple((model.get_parameter(one.name), one) for one in tied)
    return Synchronization(None, tuple(every), parts, held, pipeline.stages)


def _tie_again(model: nn.Module, before: Mapping[str, nn.Parameter]) -> None:
    """Let modules that only hold a weight which another one reads have it as it is sharded there."""
    sharded = {old: model.get_parameter(name) for name, old in before.items() if model.get_parameter(name) is not old}
    for name, old in before.items():
        path, _, own = name.rpartition(".")
        if old in sharded and model.get_parameter(name) is old:
            setattr(model.get_submodule(path), own, sharded[old])


def _sharded(
    model: nn.Module, groups: Iterable[tuple[nn.Module, ZeroLevel]], recipe: Recipe, ranks: Ranks
) -> Iterator[tuple[FSDPModule, ZeroLevel]]:
    """Shard modules in their order, and yield each; 16-bit weights become shards of 32 bits."""
    policy = MixedPrecisionPolicy()
    if recipe.compute:
        policy = MixedPrecisionPolicy(param_dtype=getattr(torch, recipe.compute))
        model.float()
    mixtures = set(map(model.get_submodule, recipe.mixtures))
    for module, level in groups:
        mesh = ranks.with_same_experts if module in mixtures else ranks.mesh
        assert mesh is not None
        if recipe.zero is ZeroLevel.NONE:  # DDP knows no split weights, and no stages
            yield replicate_split(module, mesh=mesh, mp_policy=policy), level
            continue
        words: dict[str, Any] = {"reshard_after_forward": level is ZeroLevel.PARAMETERS, "mp_policy": policy}
        if module in mixtures:
            words["shard_placement_fn"] = shard_beside(mesh.size(mesh.ndim - 1))
        elif recipe.tensor:
            words["shard_placement_fn"] = shard_beside_parts
        yield fully_shard(module, mesh=mesh, **words), level


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
