"""Layers shared by the ranks of a tensor axis, in place: the model keeps its class, its structure and its names.

Weights are split, and each module moves its input and output between the layouts that its recipe says (`products`).
Where positions are split, they are so between the ends of a stretch of layers: what makes positions, rotary tables and
masks from whole sequences, before it, sees whole sequences, and so does the head after it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import loss_parallel
from torch.distributed.tensor.placement_types import Placement
from torch.utils._pytree import tree_map

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.fused import FusedShard
from jupyter_autotrain.parallel.apply.layouts import moved, summed
from jupyter_autotrain.parallel.apply.products import MovedInput, placements_of, split_forward
from jupyter_autotrain.parallel.apply.recipe import Layout, ModuleRecipe, TensorRecipe, WeightSplit

HIDDEN: Final = "hidden_states"


def share_layers(model: nn.Module, recipe: TensorRecipe, mesh: DeviceMesh, *, staged: bool = False) -> None:
    """Split a model's layers over a tensor axis; its weights are the same on all ranks of the axis.

    Args:
        model: The model.
        recipe: What is to be split, and how.
        mesh: The axis.
        staged: Whether other stages have some of the weights; modules without any stay as they are.

    Raises:
        PlanError: Weights are of a kind that is not split, or tied to others that are split otherwise; or the model is
            compiled.
    """

    def is_here(path: str) -> bool:
        return not staged or any(True for _ in model.get_submodule(path).parameters())

    _keep_from_compiling(model)
    modules = [module for module in recipe.modules if is_here(module.path)]
    _split_weights(model, modules, mesh)
    for module in modules:
        if module.split is WeightSplit.NONE and module.comes is not module.reads:
            _gather_input(model.get_submodule(module.path), mesh, module.comes, module.reads)
    for path in filter(is_here, recipe.summed):
        _sum_gradients(model.get_submodule(path), mesh)
    for path in filter(is_here, recipe.gathered):
        _gather_input(model.get_submodule(path), mesh, Layout.POSITIONS, Layout.WHOLE, Layout.TERMS)
    for first in filter(is_here, (first for first, _ in recipe.regions)):
        _gather_input(model.get_submodule(first), mesh, Layout.WHOLE, Layout.POSITIONS)
    for last in filter(is_here, (last for _, last in recipe.regions)):
        _gather_output(model.get_submodule(last), mesh)
    _divide_sizes(model, (path for path in recipe.sizes if is_here(path.rpartition(".")[0])), mesh.size())
    if any(module.leaves is Layout.CLASSES for module in modules):
        loss_parallel().__enter__()  # for the backward pass as well, wherever the loop has it
        model.register_forward_hook(_uncompiled(_plain_outputs))


def _divide_sizes(model: nn.Module, paths: Iterable[str], ranks: int) -> None:
    for path in paths:
        owner, _, attribute = path.rpartition(".")
        writing = model.get_submodule(owner)
        setattr(writing, attribute, getattr(writing, attribute) // ranks)


def _split_weights(model: nn.Module, modules: Iterable[ModuleRecipe], mesh: DeviceMesh) -> None:
    made: dict[nn.Parameter, tuple[nn.Parameter, Placement]] = {}
    shared = MovedInput()
    by_module = {model.get_submodule(recipe.path): recipe for recipe in modules}  # one may have several names
    module: Any
    for module, recipe in by_module.items():
        if recipe.split is WeightSplit.NONE:
            continue
        for name, placement in placements_of(module, recipe).items():
            weight = getattr(module, name)
            new, known = made.get(weight) or (_split_over(weight, mesh, placement), placement)
            if known != placement:
                raise _tied(recipe.path)
            made[weight] = new, placement
            setattr(module, name, new)
        module.forward = split_forward(module, recipe, mesh, shared)
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            if weight in made:  # no op reads it there, or the plan would say how
                setattr(module, name, made[weight][0])


def _split_over(weight: nn.Parameter, mesh: DeviceMesh, placement: Placement) -> nn.Parameter:
    if isinstance(placement, FusedShard):  # torch distributes by its own placements alone
        split = placement.distributed(weight.detach(), mesh)
    else:
        split = distribute_tensor(weight.detach(), mesh, [placement], src_data_rank=None)
    return nn.Parameter(split, requires_grad=weight.requires_grad)


def _tied(path: str) -> PlanError:
    return PlanError(
        f"The weight of {path} is tied to one that is split otherwise.",
        "Tied weights that are split alike, as by their vocabulary.",
        "Plan with mode='data_parallel', or untie them.",
    )


def _gather_input(
    module: nn.Module, mesh: DeviceMesh, comes: Layout, reads: Layout, gradient: Layout | None = None
) -> None:
    """Move the first argument of a module, or its `hidden_states`."""

    def move(_module: nn.Module, args: tuple[Any, ...], words: dict[str, Any]) -> tuple[Any, Any]:
        if args:
            return (moved(args[0], mesh, comes, reads, gradient=gradient), *args[1:]), words
        hidden = moved(words[HIDDEN], mesh, comes, reads, gradient=gradient)
        return args, {**words, HIDDEN: hidden}

    module.register_forward_pre_hook(move, with_kwargs=True)


def _gather_output(module: nn.Module, mesh: DeviceMesh) -> None:
    """Gather the positions of what a module returns, or of the first it returns."""

    def move(_module: nn.Module, _args: tuple[Any, ...], made: Any) -> Any:  # noqa: ANN401 - what a layer returns
        if isinstance(made, tuple):
            return (moved(made[0], mesh, Layout.POSITIONS, Layout.WHOLE), *made[1:])
        return moved(made, mesh, Layout.POSITIONS, Layout.WHOLE)

    module.register_forward_hook(move)


def _sum_gradients(module: nn.Module, mesh: DeviceMesh) -> None:
    """Let a module's own weights get the gradients of all ranks' positions."""
    forward = module.forward

    def run(*args: Any, **words: Any) -> Any:  # noqa: ANN401 - as the module's own
        with in_place(module, {name: summed(p, mesh) for name, p in module.named_parameters(recurse=False)}):
            return forward(*args, **words)

    module.forward = functools.update_wrapper(run, forward)


@contextmanager
def in_place(module: nn.Module, tensors: dict[str, torch.Tensor]) -> Iterator[None]:
    """Let a module see tensors in the place of its own parameters."""
    held = dict(module._parameters)  # noqa: SLF001 - torch has no other way that keeps hooks
    module._parameters.update(tensors)  # type: ignore[arg-type] # noqa: SLF001 - as above
    try:
        yield
    finally:
        module._parameters.update(held)  # noqa: SLF001 - as above


def _plain_outputs(model: nn.Module, _args: tuple[Any, ...], made: Any) -> Any:  # noqa: ANN401 - what a model returns
    """Return a loss as a plain tensor, and out of training logits too; in training they stay split."""

    def plain(value: Any) -> Any:  # noqa: ANN401 - as above
        is_split = isinstance(value, DTensor) and value.ndim > 0 and model.training
        return value.full_tensor() if isinstance(value, DTensor) and not is_split else value

    return tree_map(plain, made)


def _keep_from_compiling(model: nn.Module) -> None:
    """Refuse to compile a model that shares layers; what compiles it from outside runs it as it is.

    Compiled code fails on split logits whose gradient is not asked for (pytorch/pytorch#172556), and on recompute.

    Raises:
        PlanError: It is compiled already.
    """
    is_compiled = any(module._compiled_call_impl is not None for module in model.modules())  # noqa: SLF001 - no public one
    if is_compiled or hasattr(model, "_orig_mod"):
        raise _compiled(model)

    def refuse(*_args: object, **_words: object) -> None:
        raise _compiled(model)

    changed: Any = model
    changed.compile = refuse
    changed.forward = _uncompiled(model.forward)


def _uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs as it is where what calls it is compiled."""
    kept: Callable[..., Any] = torch.compiler.disable(function)  # type: ignore[no-untyped-call] # torch's
    return kept


def _compiled(model: nn.Module) -> PlanError:
    return PlanError(
        f"{type(model).__name__} is compiled, and ranks share its layers.",
        "A model that is not compiled: torch.compile does not run what is split over a tensor axis.",
        "Leave out compile, or plan with mode='data_parallel'.",
    )
