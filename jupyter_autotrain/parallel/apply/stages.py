"""A model cut into pipeline stages, in place: it keeps its class, its names, and its own forward pass.

A rank has the weights of its parts only. To run a part, the model's forward pass runs on the whole microbatch, so that
masks, positions and labels are made as the model makes them: layers before the part pass on what they are given, the
first layer of the part takes what the rank before has sent, and the first layer after it ends the forward pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed import ProcessGroup

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.ranks import Ranks
from jupyter_autotrain.parallel.apply.recipe import PipelineRecipe

HIDDEN = "hidden_states"


@dataclass(frozen=True, slots=True)
class Tied:
    """A weight of which the first and the last stage have a copy each, whose gradients are summed.

    Attributes:
        name: Its name on this rank.
        whole_name: Its name in the whole model.
        group: The ranks of both copies.
    """

    name: str
    whole_name: str
    group: ProcessGroup | None


def parts_of(recipe: PipelineRecipe, ranks: Ranks) -> range:
    """Return the parts that a rank runs: its stage, or its chunks of layers, which come around all stages."""
    stage = ranks.pipeline.get_local_rank() if ranks.pipeline else 0
    return range(stage, recipe.parts, recipe.stages)


def keep_parts(model: nn.Module, recipe: PipelineRecipe, ranks: Ranks) -> tuple[Tied, ...]:
    """Drop the weights of the parts that other ranks run; return the tied weights of this rank.

    Raises:
        PlanError: The model is not the one that was planned.
    """
    parts = parts_of(recipe, ranks)
    whole = {weight: name for name, weight in model.named_parameters()}
    first = _weights(model, recipe.first)
    last = _weights(model, recipe.last)
    kept: dict[str, nn.Parameter] = {}
    if 0 in parts:
        kept = first
    elif recipe.parts - 1 in parts:
        kept = last
    own = {number for part in parts for number in recipe.layers_of(part)}
    layers = [path for number, path in enumerate(recipe.layers) if number not in own]
    for name in (first.keys() | last.keys() | _weights(model, layers).keys()) - kept.keys():
        _drop(model, name, ranks.device)
    names = {weight: name for name, weight in reversed(kept.items())}
    shared = set(last.values())
    tied = [weight for weight in dict.fromkeys(first.values()) if weight in shared]
    group = _end_group(ranks) if tied else None
    return tuple(Tied(names[weight], whole[weight], group) for weight in tied if weight in names)


def _weights(model: nn.Module, paths: Iterable[str]) -> dict[str, nn.Parameter]:
    """Return the weights of some modules by all of their names."""
    found: dict[str, nn.Parameter] = {}
    for path in paths:
        try:
            module = model.get_submodule(path)
        except AttributeError:
            raise PlanError(
                f"The model has no module {path}.",
                "The model that was planned.",
                "Plan for this model: plan = at.plan(model, inputs, ...).",
            ) from None
        inside = module.named_parameters(prefix=path, remove_duplicate=False)
        found.update(inside)
    return found


def _drop(model: nn.Module, name: str, device: torch.device) -> None:
    """Put zeros that take no memory in the place of a weight, for what computes shapes and masks."""
    path, _, own = name.rpartition(".")
    module = model.get_submodule(path)
    weight = module._parameters.pop(own)  # noqa: SLF001 - torch has no other way to make it no parameter
    assert weight is not None
    setattr(module, own, torch.zeros((), dtype=weight.dtype, device=device).expand(weight.shape))


def _end_group(ranks: Ranks) -> ProcessGroup | None:
    """Return the ranks of the first and the last stage that have this one's samples; all ranks make all such groups."""
    assert ranks.pipeline is not None
    each = ranks.count // ranks.pipeline.size()
    own = None
    for number in range(each):
        group = distributed.new_group([number, ranks.count - each + number])
        own = group if ranks.rank % each == number else own
    return own


class PartEnded(Exception):  # noqa: N818 - the regular end of a part's forward pass
    """The layers of a part are run; holds what goes to the next one."""

    def __init__(self, hidden: torch.Tensor) -> None:
        super().__init__()
        self.hidden = hidden


class Layers:
    """The layers of a model, of which the forward pass runs those of one part.

    Args:
        model: Its layers get a class of their own, which knows this.
        recipe: The stages.
    """

    def __init__(self, model: nn.Module, recipe: PipelineRecipe) -> None:
        self._length: int | None = None  # of what layers make, once it is known
        self._part: range | None = None
        self._received: torch.Tensor | None = None
        for number, path in enumerate(recipe.layers):
            _take_calls(model.get_submodule(path), functools.partial(self._call, number))

    def run(self, part: range, received: torch.Tensor | None, forward: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the model makes
        """Return what a forward pass makes, or the last layer of the part where that is not the model's.

        Args:
            part: Numbers of its layers; of none, what enters the first one is returned.
            received: What the layer before it has made; None for the first part.
            forward: Runs the whole model.
        """
        self._part = part
        self._received = received
        try:
            return forward()
        except PartEnded as ended:
            return ended.hidden
        finally:
            self._part = self._received = None

    def _call(self, number: int, layer: Callable[..., Any], args: tuple[Any, ...], words: dict[str, Any]) -> Any:  # noqa: ANN401 - what a layer makes
        if self._part is None:
            raise PlanError(
                "The model was called, and this rank has some of its layers only.",
                "Steps by `train.step(batch)`, and losses without a step by `train.evaluate(batch)`.",
                "Save with train.save_pretrained(folder) and load that to use the whole model.",
            )
        hidden = _hidden(args, words)
        if number >= self._part.stop:
            raise PartEnded(hidden)
        if number < self._part.start:
            return self._passed_on(hidden, layer, args, words)
        if number == self._part.start and self._received is not None:
            args, words = _with_hidden(args, words, self._received)
        return layer(*args, **words)

    def _passed_on(
        self, hidden: torch.Tensor, layer: Callable[..., Any], args: tuple[Any, ...], words: dict[str, Any]
    ) -> Any:  # noqa: ANN401 - what a layer makes
        """Return hidden states as the layers do, alone or before others; of a layer that other ranks run."""
        if self._length is None:
            with torch.no_grad():
                self._length = _length(layer(*args, **words))
        return (hidden, *[None] * (self._length - 1)) if self._length else hidden


def _length(made: object) -> int:
    """Return the length of the tuple that a layer has made; 0 for a tensor alone."""
    if isinstance(made, torch.Tensor):
        return 0
    if isinstance(made, tuple) and made and isinstance(made[0], torch.Tensor):
        return len(made)
    raise PlanError(
        f"A layer returns a {type(made).__name__}.",
        "A tensor, which the next stage is sent, or a tuple that begins with it.",
        "Return the hidden states so, or plan without a pipeline: space=StrategySpace(stages=(1,)).",
    )


def _take_calls(layer: nn.Module, call: Callable[..., Any]) -> None:
    """Have a layer's calls, hooks and all, made by a function; the layer keeps its name and attributes."""
    kind = type(layer)

    def called(self: nn.Module, *args: Any, **words: Any) -> Any:  # noqa: ANN401 - as the layer's own
        return call(functools.partial(kind.__call__, self), args, words)

    layer.__class__ = type(kind.__name__, (kind,), {"__call__": called, "__module__": kind.__module__})


def _hidden(args: tuple[Any, ...], words: dict[str, Any]) -> torch.Tensor:
    hidden = args[0] if args else words.get(HIDDEN)
    if isinstance(hidden, torch.Tensor):
        return hidden
    raise PlanError(
        "A layer is called without a tensor to go through.",
        f"The hidden states first, or as {HIDDEN}.",
        "Call layers so, or plan without a pipeline: space=StrategySpace(stages=(1,)).",
    )


def _with_hidden(
    args: tuple[Any, ...], words: dict[str, Any], hidden: torch.Tensor
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return ((hidden, *args[1:]), words) if args else (args, {**words, HIDDEN: hidden})


def groups_of(model: nn.Module, paths: Iterable[str]) -> Iterator[nn.Module]:
    """Yield the outermost of some modules that this rank has weights of, each once."""
    modules = dict.fromkeys(model.get_submodule(path) for path in paths)
    for module in modules:
        outer = any(module is not other and module in set(other.modules()) for other in modules)
        if not outer and any(True for _ in module.parameters()):
            yield module
