"""Layers whose activations are computed again in the backward pass, whole or their attention alone."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from jupyter_autotrain.parallel.apply.recipe import Recipe
from jupyter_autotrain.parallel.cost.memory import Recompute

ATTENTION_OPS: Final = (
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
)


def recompute_layers(model: nn.Module, recipe: Recipe) -> None:
    """Have the layers of a recipe recompute; the model keeps its structure and names."""
    of_transformers: Any = model
    if recipe.without_cache:
        for config in caching_configs(model):
            config.use_cache = False  # past keys would be added twice
    if recipe.without_checkpointing and hasattr(model, "gradient_checkpointing_disable"):
        of_transformers.gradient_checkpointing_disable()
    for layer in recipe.layers:
        if layer.recompute is not Recompute.NONE:
            recompute(model.get_submodule(layer.path), attention_alone=layer.recompute is Recompute.SELECTIVE)


def caching_configs(model: nn.Module) -> list[Any]:
    """Return the configurations by which modules keep past keys; a model within a model has one of its own."""
    found: dict[int, Any] = {}
    for module in model.modules():
        config = getattr(module, "config", None)
        if getattr(config, "use_cache", False):
            found[id(config)] = config
    return list(found.values())


def recompute(module: nn.Module, *, attention_alone: bool) -> None:
    """Run a module's forward pass under torch's checkpoint, inside of the hooks that gather its weights."""
    words: dict[str, Any] = {"context_fn": _attention_again} if attention_alone else {}
    again = functools.partial(checkpoint, module.forward, use_reentrant=False, **words)
    module.forward = functools.update_wrapper(again, module.forward)


def _attention_again() -> Any:  # noqa: ANN401 - a pair of torch's own context managers
    attention = frozenset(getattr(torch.ops.aten, name).default for name in ATTENTION_OPS)
    return create_selective_checkpoint_contexts(functools.partial(_policy, attention))  # type: ignore[no-untyped-call] # torch's


def _policy(
    attention: frozenset[object],
    _context: object,
    op: object,
    *_args: object,
    **_kwargs: object,
) -> CheckpointPolicy:
    return CheckpointPolicy.PREFER_RECOMPUTE if op in attention else CheckpointPolicy.MUST_SAVE
