"""Microbatches through the stages of a pipeline, by torch's own schedules.

A schedule moves numbers of microbatches: each stage finds the tensors of its microbatch at hand, since all ranks are
given whole batches, and only hidden states and their gradients travel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.utils._pytree import tree_leaves

from jupyter_autotrain.parallel.apply.ranks import Ranks
from jupyter_autotrain.parallel.apply.recipe import PipelineRecipe, Recipe
from jupyter_autotrain.parallel.apply.sharding import Synchronization
from jupyter_autotrain.parallel.apply.stages import Layers, parts_of
from jupyter_autotrain.parallel.cost.memory import Schedule

LossOf = Callable[[Any], torch.Tensor]
"""Runs the model on a microbatch and returns its loss."""


class Pipeline:
    """The parts of a rank, with a schedule for microbatches of a form.

    Args:
        model: Holds the weights of this rank's parts.
        recipe: With the stages.
        ranks: All ranks.
        exchanged: What ranks with other samples exchange for each part.
        loss_of: Runs the whole model.
    """

    def __init__(
        self,
        model: nn.Module,
        recipe: Recipe,
        ranks: Ranks,
        exchanged: Mapping[int, Synchronization],
        loss_of: LossOf,
    ) -> None:
        assert recipe.pipeline is not None
        self._recipe: PipelineRecipe = recipe.pipeline
        self._ranks = ranks
        self._exchanged = exchanged
        self._microbatches: list[Any] = []
        self._schedules: dict[bool, tuple[object, Any]] = {}
        sharers = ranks.sharers if recipe.tensor and recipe.tensor.regions else 1
        layers = Layers(model, self._recipe)
        self._parts = {
            part: _Part(model, layers, self._recipe.layers_of(part), self._find, loss_of, sharers)
            for part in parts_of(self._recipe, ranks)
        }

    def _find(self, number: int) -> Any:  # noqa: ANN401 - a microbatch as the user has it
        return self._microbatches[number]

    def run(self, microbatches: list[Any], *, trains: bool = True) -> torch.Tensor:
        """Run microbatches forward, and back where it trains; return their mean loss on the last stage, else 0."""
        self._microbatches = microbatches
        numbers = torch.arange(len(microbatches))
        schedule = self._schedule(microbatches, trains=trains)
        losses: list[torch.Tensor] = []
        words = {"target": numbers, "losses": losses, "return_outputs": False, "number": numbers}
        if trains:
            schedule.step(**words)
        else:
            schedule.eval(**words)
        self._microbatches = []
        made = [loss.detach() for loss in losses]
        return torch.stack(made).sum() if made else torch.zeros((), device=self._ranks.device)

    def _schedule(self, microbatches: list[Any], *, trains: bool) -> Any:  # noqa: ANN401 - one of torch's schedules
        """Return the schedule for microbatches of a form; torch's buffers are for one form."""
        leaves = [leaf for leaf in tree_leaves(microbatches[0]) if isinstance(leaf, torch.Tensor)]
        form = (len(microbatches), *((leaf.shape, leaf.dtype) for leaf in leaves))
        found = self._schedules.get(trains)
        if found is None or found[0] != form:
            found = form, self._made(len(microbatches))
            self._schedules[trains] = found
        return found[1]

    def _made(self, count: int) -> Any:  # noqa: ANN401 - one of torch's schedules
        assert self._ranks.pipeline is not None
        group = self._ranks.pipeline.get_group()
        stages: list[Any] = [
            _Stage(self._exchanged[number], part, number, self._recipe.parts, self._ranks.device, group=group)
            for number, part in self._parts.items()
        ]

        def share(loss: torch.Tensor, _number: torch.Tensor) -> torch.Tensor:
            return loss / count

        if self._recipe.chunks > 1:
            return ScheduleInterleaved1F1B(stages, count, loss_fn=share, scale_grads=False)
        one_by_one = count >= self._recipe.stages and self._recipe.schedule is Schedule.ONE_F_ONE_B
        kind = Schedule1F1B if one_by_one else ScheduleGPipe  # the same where there are fewer microbatches than stages
        return kind(stages[0], count, loss_fn=share, scale_grads=False)


class _Part(nn.Module):
    """The consecutive layers that a rank runs for a microbatch, and what of the model comes before or after them.

    Args:
        model: The model.
        layers: Its layers.
        part: Numbers of the part's layers.
        find: Returns a microbatch by its number.
        loss_of: Runs the whole model.
        sharers: Ranks that share the positions of what goes from layer to layer.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers,
        part: range,
        find: Callable[[int], Any],
        loss_of: LossOf,
        sharers: int,
    ) -> None:
        super().__init__()
        self.model = model
        self._layers = layers
        self._part = part
        self._find = find
        self._loss_of = loss_of
        self._sharers = sharers

    def forward(self, received: torch.Tensor | None = None, *, number: torch.Tensor) -> torch.Tensor:
        """Return what goes to the next part, or the loss."""
        microbatch = self._find(int(number))
        made: torch.Tensor = self._layers.run(self._part, received, lambda: self._loss_of(microbatch))
        return made

    def entering(self) -> tuple[torch.Tensor, ...]:
        """Return a tensor of the form of what the part before sends, as the model makes it for the first layer."""
        made: torch.Tensor = self._layers.run(range(0), None, lambda: self._loss_of(self._find(0)))
        if self._sharers > 1:
            made = made[:, : made.shape[1] // self._sharers]
        return (made.detach().requires_grad_(made.is_floating_point()),)


class _Stage(PipelineStage):
    """A stage that exchanges gradients with ranks that have other samples in its last backward pass.

    Args:
        exchanged: What is exchanged.
        args: As torch's.
        words: As torch's.
    """

    def __init__(self, exchanged: Synchronization, *args: Any, **words: Any) -> None:  # noqa: ANN401 - as torch's own
        super().__init__(*args, **words)
        self._exchanged = exchanged

    def backward_maybe_with_nosync(
        self,
        backward_type: Any,  # noqa: ANN401 - as torch's own
        bwd_kwargs: dict[str, Any],
        last_backward: bool = False,
    ) -> Any:  # noqa: ANN401 - as torch's own
        self._exchanged.set_last(last=last_backward)
        return super().backward_maybe_with_nosync(backward_type, bwd_kwargs, last_backward)
