"""A folder that plain transformers loads, written from a model whose weights are spread over ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.tensor import DTensor

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.recipe import Recipe


def save_pretrained(model: nn.Module, folder: Path, recipe: Recipe) -> None:
    """Gather the weights and let rank 0 write them with the model's own `save_pretrained`; all ranks call this.

    The whole weights lie in the host memory of rank 0 meanwhile, in the format that the model had before the plan.

    Raises:
        PlanError: The model has no `save_pretrained`.
    """
    if not hasattr(model, "save_pretrained"):
        raise PlanError(
            f"{type(model).__name__} has no save_pretrained.",
            "A model of transformers, or one with a method of that name.",
            "Take the whole weights with torch: torch.distributed.checkpoint.state_dict.get_model_state_dict(model, "
            "options=StateDictOptions(full_state_dict=True, cpu_offload=True)).",
        )
    spread = distributed.is_initialized()
    if recipe.pipeline and spread:
        weights = _of_all_stages(model)
    else:
        weights = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=spread))
    if not spread or distributed.get_rank() == 0:
        with _own_class(model):
            _write(model, folder, weights, recipe)
    if spread:
        distributed.barrier()


def _of_all_stages(model: nn.Module) -> dict[str, Any]:
    """Return the weights of all stages on rank 0; of ranks that have the same, the first one's."""
    held = {name: _whole(value).cpu() for name, value in model.state_dict().items()}
    every: list[dict[str, Any]] | None = [{}] * distributed.get_world_size() if distributed.get_rank() == 0 else None
    distributed.gather_object(held, every)
    return {name: value for one in reversed(every or []) for name, value in one.items()}


def _whole(value: torch.Tensor) -> torch.Tensor:
    return value.full_tensor() if isinstance(value, DTensor) else value


@contextmanager
def _own_class(model: nn.Module) -> Iterator[None]:
    """Give a model the class that it had before torch put a sharded one over it: its name goes into the folder."""
    spread = type(model)
    own = next(kind for kind in spread.__mro__ if not kind.__module__.startswith("torch.distributed"))
    model.__class__ = own
    try:
        yield
    finally:
        model.__class__ = spread


def _write(model: Any, folder: Path, weights: dict[str, Any], recipe: Recipe) -> None:  # noqa: ANN401 - a model of transformers
    """Write weights, those in 16 bits that the model has so while the plan trains 32-bit ones for it."""
    if not recipe.compute:
        model.save_pretrained(folder, state_dict=weights)
        return
    own = getattr(torch, recipe.compute)
    narrow = {name: value.to(own) if name in recipe.weights else value for name, value in weights.items()}
    model.save_pretrained(folder, state_dict=narrow)
    model.config.dtype = own  # it wrote the format of the weights that are trained
    model.config.save_pretrained(folder)
