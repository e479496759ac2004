"""A training by whole batches: what `plan.parallelize` returns, with pipeline stages, without, and in one process."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import torch
from torch import distributed, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils._pytree import tree_leaves

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply import pretrained
from jupyter_autotrain.parallel.apply.checkpoints import TrainingState
from jupyter_autotrain.parallel.apply.loading import microbatches_of
from jupyter_autotrain.parallel.apply.pipeline import Pipeline
from jupyter_autotrain.parallel.apply.ranks import Ranks, own_random_numbers, random_state, set_random_state
from jupyter_autotrain.parallel.apply.recipe import Recipe
from jupyter_autotrain.parallel.apply.sharding import Synchronization

LossFunction: TypeAlias = Callable[[Any, Any], torch.Tensor]
"""Makes the loss from what the model returns and the target."""
TARGET: Final = "labels"


class Training:
    """A model that trains by whole batches: `loss = train.step(batch)`.

    Args:
        recipe: How.
        model: As it is on this rank.
        loss_fn: Makes the loss; None: the model returns it.
        optimizer: Its optimizer.
        ranks: All ranks.
        exchanged: What they exchange.
        schedulers: Those of the optimizer, for checkpoints.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what `parallelize` has made
        self,
        recipe: Recipe,
        model: nn.Module,
        loss_fn: LossFunction | None,
        optimizer: Optimizer,
        ranks: Ranks,
        exchanged: Synchronization,
        schedulers: Iterable[LRScheduler] = (),
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self._recipe = recipe
        self._loss_fn = loss_fn
        self._ranks = ranks
        self._exchanged = exchanged
        self._schedulers = list(schedulers)
        self._pipeline: Pipeline | None = None
        if recipe.pipeline and not ranks.are_alone:
            self._pipeline = Pipeline(model, recipe, ranks, exchanged.parts, self._loss_of)
        self._checked = ranks.are_alone
        self._numbers = _own_numbers(ranks)

    def step(self, batch: Any) -> torch.Tensor:  # noqa: ANN401 - whatever the model takes
        """Train on a whole batch, the same on all ranks, and return its loss; gradients stay until the next one.

        Args:
            batch: Keyword arguments of the model, or positional ones, or the only one. With a `loss_fn` its `labels`,
                or its last part, is the target and not given to the model.

        Raises:
            PlanError: Ranks have different batches, or the model returns no loss.
        """
        microbatches = self._microbatches(batch)
        self.optimizer.zero_grad()
        with self._drawing():
            loss = self._pipeline.run(microbatches) if self._pipeline else self._accumulate(microbatches)
        self.optimizer.step()
        return self._mean(loss)

    def evaluate(self, batch: Any) -> torch.Tensor:  # noqa: ANN401 - as above
        """Return the loss of a whole batch on every rank, without dropout and without a step.

        Raises:
            PlanError: As `step`.
        """
        microbatches = self._microbatches(batch)
        trained = self.model.training
        self.model.eval()
        with torch.no_grad():
            if self._pipeline:
                loss = self._pipeline.run(microbatches, trains=False)
            else:
                loss = torch.stack([self._loss_of(microbatch) for microbatch in microbatches]).mean()
        self.model.train(trained)
        return self._mean(loss)

    def save_checkpoint(self, folder: str | Path, *, step: int) -> None:
        """Save what trains as one checkpoint of all ranks, each of which makes this call (see `Plan`)."""
        with self._drawing():
            self._state().save(Path(folder), step)

    def load_checkpoint(self, folder: str | Path) -> int | None:
        """Go on from the newest checkpoint in a folder, of any plan; return its step, None where there is none."""
        with self._drawing():
            return self._state().load(Path(folder))

    def save_pretrained(self, folder: str | Path) -> None:
        """Save the trained model as a folder that plain transformers loads; each rank makes this call.

        Raises:
            PlanError: The model has no `save_pretrained`.
        """
        pretrained.save_pretrained(self.model, Path(folder), self._recipe)

    def _state(self) -> TrainingState:
        return TrainingState(self.model, self.optimizer, None, self._schedulers)

    def _microbatches(self, batch: Any) -> list[Any]:  # noqa: ANN401 - as above
        if not self._checked:
            _check_alike(batch, self._ranks)
            self._checked = True
        return microbatches_of(batch, self._recipe, self._ranks)

    def _accumulate(self, microbatches: list[Any]) -> torch.Tensor:
        """Run microbatches one after another, each forward and back; return their mean loss."""
        losses = []
        for number, microbatch in enumerate(microbatches):
            self._exchanged.set_last(last=number == len(microbatches) - 1)
            loss = self._loss_of(microbatch) / len(microbatches)
            torch.autograd.backward(loss)
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def _mean(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss over the samples of all ranks; with stages, only the last one has made any."""
        if self._ranks.are_alone:
            return loss
        dtypes = [torch.float32, *(weight.dtype for weight in self.model.parameters())]
        loss = loss.to(functools.reduce(torch.promote_types, dtypes))  # the same on stages that have made none
        distributed.all_reduce(loss)
        return loss / (self._ranks.samples * self._ranks.sharers)

    def _loss_of(self, batch: Any) -> torch.Tensor:  # noqa: ANN401 - as above
        if self._loss_fn is None:
            made = _called(self.model, batch)
            loss = made[0] if isinstance(made, tuple) else getattr(made, "loss", made)
        else:
            inputs, target = _inputs_and_target(batch)
            loss = self._loss_fn(_called(self.model, inputs), target)
        if not isinstance(loss, torch.Tensor) or loss.ndim:
            raise PlanError(
                f"There is no loss: {'the model' if self._loss_fn is None else 'loss_fn'} returned {_shown(loss)}.",
                "A tensor of one number, the mean over the samples.",
                "Give labels with the batch, or a function: plan.parallelize(model, loss_fn, optimizer=optimizer).",
            )
        return loss

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Draw random numbers of this rank's own; what the user draws, such as the order of samples, stays alike."""
        shared = random_state()
        if not self._ranks.are_alone:
            set_random_state(self._numbers)
        try:
            yield
        finally:
            if not self._ranks.are_alone:
                self._numbers = random_state()
                set_random_state(shared)


def _own_numbers(ranks: Ranks) -> dict[str, Any]:
    """Return random numbers of a rank's own, and let the process's generators be alike on all ranks."""
    if ranks.are_alone:
        return random_state()
    alike = ranks.same(int(torch.randint(2**62, ()).item()))
    own_random_numbers(ranks)
    own = random_state()
    torch.manual_seed(alike)
    return own


def _called(model: nn.Module, batch: Any) -> Any:  # noqa: ANN401 - whatever the model takes and makes
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple | list) else model(batch)


def _inputs_and_target(batch: Any) -> tuple[Any, Any]:  # noqa: ANN401 - as above
    if isinstance(batch, Mapping) and TARGET in batch:
        return {name: value for name, value in batch.items() if name != TARGET}, batch[TARGET]
    if isinstance(batch, tuple | list) and len(batch) > 1:
        return batch[:-1], batch[-1]
    raise PlanError(
        f"There is a loss_fn, and no target in a batch, a {type(batch).__name__}.",
        f"A mapping with {TARGET!r}, or a tuple whose last part is the target.",
        "Give batches so; or leave loss_fn out, where the model returns its loss.",
    )


def _shown(made: object) -> str:
    return f"a tensor of shape {tuple(made.shape)}" if isinstance(made, torch.Tensor) else f"a {type(made).__name__}"


def _check_alike(batch: Any, ranks: Ranks) -> None:  # noqa: ANN401 - as above
    """Check the first batch, since ranks that shuffle differently would train without an error.

    Raises:
        PlanError: Ranks have different batches.
    """
    digest = hashlib.blake2b(digest_size=7)
    for leaf in tree_leaves(dict(batch) if isinstance(batch, Mapping) else batch):
        if isinstance(leaf, torch.Tensor):
            digest.update(f"{leaf.shape} {leaf.double().sum().item()} {leaf.flatten()[:64].tolist()}".encode())
    own = int.from_bytes(digest.digest(), "big")
    bounds = torch.tensor([own, -own], dtype=torch.int64, device=ranks.device)
    distributed.all_reduce(bounds, op=distributed.ReduceOp.MAX)
    if bounds[0] != -bounds[1]:
        raise PlanError(
            "Ranks have different batches.",
            "The same whole batch on every rank, of which each takes its part.",
            "Draw samples alike on all ranks: DataLoader(..., generator=torch.Generator().manual_seed(0)).",
        )
