"""Modules whose weights are split over a tensor axis: products with weights, and embeddings.

The weight stays a parameter of the module, as one distributed tensor; the forward pass takes this rank's part of it.
Which rank has what is what Megatron-LM does (Shoeybi et al. 2019): columns are output features, rows input features,
the vocabulary is rows of an embedding. A bias is split with its columns. It is whole where a weight is split by rows,
and of several projections in one weight (`fused`), where a rank reads its part: FSDP shares out a vector along its only
dim, which such a split needs for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.placement_types import Placement, _StridedShard

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.clipping import local
from jupyter_autotrain.parallel.apply.fused import FusedOutput, FusedShard
from jupyter_autotrain.parallel.apply.layouts import moved, summed
from jupyter_autotrain.parallel.apply.recipe import Layout, ModuleRecipe, WeightSplit

CONV1D: Final = "Conv1D"  # of transformers: a product whose weight is (inputs, outputs)
_FEATURES_OF = {WeightSplit.COLUMNS: 0, WeightSplit.ROWS: 1, WeightSplit.VOCABULARY: 0}  # dim of (outputs, inputs)


def placements_of(module: nn.Module, recipe: ModuleRecipe) -> dict[str, Placement]:
    """Return how a module's weight lies on the tensor axis, and its bias where that is split with the columns.

    Raises:
        PlanError: The module is of a kind that is not split.
    """
    dim = _FEATURES_OF[recipe.split]
    if _is_conv1d(module) or (_is_embedding(module) and recipe.split is WeightSplit.COLUMNS):
        dim = 1 - dim
    elif not can_split(module):
        raise _unknown(module, recipe)
    if recipe.sizes:
        return {"weight": FusedShard(dim, recipe.sizes)}
    if recipe.parts > 1:
        return {"weight": _StridedShard(dim, split_factor=recipe.parts)}
    found: dict[str, Placement] = {"weight": Shard(dim)}
    if recipe.split is not WeightSplit.ROWS and getattr(module, "bias", None) is not None:
        found["bias"] = Shard(0)
    return found


def can_split(module: nn.Module) -> bool:
    """Return whether a module is of a kind whose weight is split: one that adds something to it is not."""
    return _is_linear(module) or _is_embedding(module) or _is_conv1d(module)


@dataclass
class MovedInput:
    """The input of the last product by columns, moved: others that read it share that, and its gradient is summed once.

    Attributes:
        source: What it was made of, and how.
        moved: The result.
    """

    source: tuple[Any, ...] = (None,)
    moved: torch.Tensor | None = None

    def of(self, x: torch.Tensor, recipe: ModuleRecipe, mesh: DeviceMesh) -> torch.Tensor:
        """Return the input of a product in the layout in which it is read."""
        gradient = None if recipe.is_gathered else Layout.TERMS
        version = x._version if torch.is_grad_enabled() else None  # noqa: SLF001 - torch's own count of changes
        source = (x, version, recipe.comes, recipe.reads, gradient)
        if self.moved is None or version is None or self.source[0] is not x or self.source[1:] != source[1:]:
            self.source = source
            self.moved = moved(x, mesh, recipe.comes, recipe.reads, gradient=gradient)
        return self.moved


def split_forward(
    module: nn.Module, recipe: ModuleRecipe, mesh: DeviceMesh, shared: MovedInput
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the forward pass of a module with a split weight, from the layout of its input to that of its output."""
    if _is_embedding(module):
        return partial(_embedded, module, recipe, mesh)
    return partial(_multiplied, module, recipe, mesh, shared)


def _is_linear(module: nn.Module) -> bool:
    return type(module).forward is nn.Linear.forward


def _is_conv1d(module: nn.Module) -> bool:
    return type(module).__name__ == CONV1D and type(module).__module__.startswith("transformers.")


def _is_embedding(module: Any) -> bool:  # noqa: ANN401 - a module of whatever attributes
    plain = type(module).forward is nn.Embedding.forward
    return plain and module.max_norm is None and not module.scale_grad_by_freq and not module.sparse


def _unknown(module: nn.Module, recipe: ModuleRecipe) -> PlanError:
    return PlanError(
        f"The plan splits the weights of {recipe.path}, a {type(module).__name__}.",
        "Weights of nn.Linear, nn.Embedding and Conv1D are split over a tensor axis.",
        "Plan with mode='data_parallel', or make the product of an nn.Linear.",
    )


def _multiplied(
    module: Any,  # noqa: ANN401 - a linear module
    recipe: ModuleRecipe,
    mesh: DeviceMesh,
    shared: MovedInput,
    x: torch.Tensor,
) -> torch.Tensor:
    weight = local(module.weight)
    if _is_conv1d(module):
        weight = weight.t()
    if recipe.split is WeightSplit.ROWS:
        x = moved(x, mesh, recipe.comes, recipe.reads)
        made = moved(nn.functional.linear(x, weight), mesh, Layout.TERMS, recipe.leaves)
        bias = _bias_of(module, recipe.leaves, mesh, recipe)
        return made if bias is None else made + bias
    x = shared.of(x, recipe, mesh)
    made = nn.functional.linear(x, weight, _bias_of(module, Layout.FEATURES, mesh, recipe))
    made = moved(made, mesh, Layout.FEATURES, recipe.leaves)
    return FusedOutput.of(made, recipe.sizes, mesh.size()) if recipe.sizes else made


def _bias_of(
    module: Any,  # noqa: ANN401 - a linear module
    leaves: Layout,
    mesh: DeviceMesh,
    recipe: ModuleRecipe,
) -> torch.Tensor | None:
    """Return the part of a module's bias that meets what this rank has of a product."""
    bias: torch.Tensor | None = module.bias
    if bias is None or isinstance(bias, DTensor) or leaves is Layout.WHOLE:
        return None if bias is None else local(bias)
    bias = summed(bias, mesh)
    if leaves is Layout.POSITIONS:
        return bias
    parts = bias.split_with_sizes(recipe.sizes) if recipe.sizes else bias.chunk(recipe.parts)
    return torch.cat([part.chunk(mesh.size())[mesh.get_local_rank()] for part in parts])


def _embedded(module: Any, recipe: ModuleRecipe, mesh: DeviceMesh, ids: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 - an embedding
    weight = local(module.weight)
    if recipe.split is WeightSplit.COLUMNS:
        rows = nn.functional.embedding(ids, weight, module.padding_idx)
        return moved(rows, mesh, Layout.FEATURES, recipe.leaves)
    own = ids - mesh.get_local_rank() * len(weight)
    is_own = (own >= 0) & (own < len(weight))
    rows = nn.functional.embedding(own.where(is_own, 0), weight)
    if module.padding_idx is not None:
        rows = torch.where((ids == module.padding_idx).unsqueeze(-1), rows.detach(), rows)
    rows = rows * is_own.unsqueeze(-1)
    return moved(rows, mesh, Layout.TERMS, recipe.leaves)
