"""Runs a recipe: the user's model, optimizer and loader, made to train as the plan says.

`apply` is the entry point for loops, `parallelize` for steps on whole batches, as pipelines need them. In order: the
ranks meet; the loader is cut; layers that recompute are marked; layers are shared by ranks of a tensor axis, or cut
into stages, and weights are spread; the optimizer follows them. What a reader must know is said once, by rank 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from jupyter_autotrain.parallel.apply import pretrained
from jupyter_autotrain.parallel.apply.checkpoints import TrainingState
from jupyter_autotrain.parallel.apply.loading import rank_loader
from jupyter_autotrain.parallel.apply.materializing import Start, start_of
from jupyter_autotrain.parallel.apply.measuring import StepClock, Tell
from jupyter_autotrain.parallel.apply.ranks import Ranks, meet, own_random_numbers
from jupyter_autotrain.parallel.apply.recipe import Recipe
from jupyter_autotrain.parallel.apply.recompute import recompute_layers
from jupyter_autotrain.parallel.apply.sharding import Synchronization, share_batch_statistics, spread
from jupyter_autotrain.parallel.apply.stepping import (
    Masters,
    Stepper,
    check_owned,
    check_schedulers,
    drop,
    follow,
    use_single_kernels,
)
from jupyter_autotrain.parallel.apply.training import LossFunction, Training


def apply(  # noqa: PLR0913 - the recipe, the parts of a training loop, and what their steps need
    recipe: Recipe,
    model: nn.Module,
    optimizer: Optimizer,
    loader: Any,  # noqa: ANN401 - any iterable of batches
    *,
    schedulers: Iterable[LRScheduler] = (),
    max_norm: float | None = None,
    weights: str | Path | None = None,
    tell: Tell | None = None,
) -> tuple[nn.Module, Optimizer, Any]:
    """Return the model, the optimizer and the loader of this rank; model and optimizer are changed in place.

    After some steps, rank 0 calls `tell` with what a step takes and each rank holds, if as many processes run as the
    recipe has ranks.

    Raises:
        PlanError: The processes, the optimizer or the loader do not fit the plan, or it has pipeline stages.
    """
    recipe.check_loop()
    schedulers = list(schedulers)
    check_owned(model, optimizer)
    check_schedulers(optimizer, schedulers, recipe.microbatches)
    ranks = meet(recipe)
    start = start_of(model, weights, ranks)
    cut, uneven = rank_loader(loader, recipe, ranks)
    model, exchanged, statistics = _prepared(recipe, model, optimizer, ranks, start)
    stepper = _stepper(recipe, optimizer, exchanged, recipe.microbatches, max_norm)
    stepper.install(schedulers)
    if recipe.microbatches > 1:
        model.zero_grad = optimizer.zero_grad  # type: ignore[method-assign] # both are used, and neither may forget too early
    if tell and ranks.count == recipe.ranks:
        StepClock(model, optimizer, ranks, tell)
    own_random_numbers(ranks)
    _say(ranks, statistics, uneven, start.told if start else "")
    return model, optimizer, cut


def parallelize(  # noqa: PLR0913 - the recipe, the parts of a training loop, and what their steps need
    recipe: Recipe,
    model: nn.Module,
    loss_fn: LossFunction | None,
    optimizer: Optimizer,
    *,
    schedulers: Iterable[LRScheduler] = (),
    max_norm: float | None = None,
    weights: str | Path | None = None,
    tell: Tell | None = None,
) -> Training:
    """Return the model and its optimizer as steps on whole batches; both are changed in place.

    Raises:
        PlanError: The processes, the model or the optimizer do not fit the plan.
    """
    check_owned(model, optimizer)
    ranks = meet(recipe)
    start = start_of(model, weights, ranks)
    model, exchanged, statistics = _prepared(recipe, model, optimizer, ranks, start)
    _stepper(recipe, optimizer, exchanged, 1, max_norm).install(())
    if tell and ranks.count == recipe.ranks:
        StepClock(model, optimizer, ranks, tell)
    _say(ranks, statistics, start.told if start else "")
    return Training(recipe, model, loss_fn, optimizer, ranks, exchanged, list(schedulers))


def _prepared(
    recipe: Recipe, model: nn.Module, optimizer: Optimizer, ranks: Ranks, start: Start | None
) -> tuple[nn.Module, Synchronization, str]:
    """Return the model as this rank has it, what ranks exchange, and what is to be said of its statistics."""
    model, statistics = share_batch_statistics(model, ranks)
    recompute_layers(model, recipe)
    before = dict(model.named_parameters())
    exchanged = spread(model, recipe, ranks, start.fill if start else None)
    now = {exchanged.names.get(name, name): weight for name, weight in model.named_parameters()}
    follow(optimizer, {weight: now[name] for name, weight in before.items() if name in now})
    drop(optimizer, {weight for name, weight in before.items() if name not in now})
    use_single_kernels(optimizer)
    return model, exchanged, statistics


def _stepper(
    recipe: Recipe, optimizer: Optimizer, exchanged: Synchronization, microbatches: int, max_norm: float | None
) -> Stepper:
    masters = Masters(optimizer) if recipe.compute and not exchanged.groups else None
    return Stepper(optimizer, exchanged, microbatches, max_norm, masters)


def save(state: tuple[nn.Module, Optimizer, Any], schedulers: Iterable[LRScheduler], folder: str, step: int) -> None:
    """Write a checkpoint of what `apply` has returned; see `checkpoints`.

    Raises:
        PlanError: Microbatches of a step are still to come.
    """
    TrainingState(*state, schedulers).save(Path(folder), step)


def load(state: tuple[nn.Module, Optimizer, Any], schedulers: Iterable[LRScheduler], folder: str) -> int | None:
    """Take on the newest checkpoint of a folder; return its step, or None where there is none."""
    return TrainingState(*state, schedulers).load(Path(folder))


def save_pretrained(recipe: Recipe, model: nn.Module, folder: str) -> None:
    """Write a folder that plain transformers loads; see `pretrained`.

    Raises:
        PlanError: The model has no `save_pretrained`.
    """
    pretrained.save_pretrained(model, Path(folder), recipe)


def _say(ranks: Ranks, *sentences: str) -> None:
    if ranks.rank == 0:
        for sentence in filter(None, sentences):
            warnings.warn(sentence, stacklevel=4)
