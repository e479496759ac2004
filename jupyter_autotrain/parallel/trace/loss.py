"""The loss of whatever a model returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass

import torch

from jupyter_autotrain.errors import TraceError
from jupyter_autotrain.parallel.trace.internals import Passed

_ACTION = "Give a loss_fn that makes the loss from what the model returns."


def loss_of(out: Passed, loss_fn: Callable[[Passed], torch.Tensor] | None) -> torch.Tensor:
    """What `loss_fn` makes of an output; without it the model's own `loss`, else the sum of its floating point outputs.

    Outputs may be tensors, mappings, sequences and dataclasses, in one another.

    Raises:
        TraceError: There is no tensor to make a loss of, or `loss_fn` makes something else than a number.
    """
    if loss_fn is not None:
        return _number(loss_fn(out))
    own = out.get("loss") if isinstance(out, Mapping) else getattr(out, "loss", None)
    if isinstance(own, torch.Tensor):
        return _sum(own)
    parts = [tensor for tensor in _tensors(out) if tensor.is_floating_point() or tensor.is_complex()]
    if not parts:
        raise _without_tensors(out)
    total = _sum(parts[0])
    for part in parts[1:]:
        total = total + _sum(part)
    return total


def _sum(tensor: torch.Tensor) -> torch.Tensor:
    real = tensor.abs() if tensor.is_complex() else tensor
    return real if real.dim() == 0 else real.sum()


def _tensors(out: Passed) -> Iterator[torch.Tensor]:
    if isinstance(out, torch.Tensor):
        yield out
        return
    for part in _parts(out) or ():
        yield from _tensors(part)


def _parts(out: Passed) -> Sequence[Passed] | None:
    """The parts of an output; None where they are unknown."""
    if isinstance(out, Mapping):
        return list(out.values())
    if isinstance(out, list | tuple | set | frozenset):
        return list(out)
    if is_dataclass(out) and not isinstance(out, type):
        return [getattr(out, field.name) for field in fields(out)]
    return None


def _number(loss: object) -> torch.Tensor:
    if isinstance(loss, torch.Tensor) and loss.dim() == 0:
        return loss
    there = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else f"a {type(loss).__name__}"
    raise TraceError(
        f"The loss_fn returns {there}.", "A tensor with one element and no dims.", "Let it return a mean or a sum."
    )


def _without_tensors(out: object) -> TraceError:
    name = type(out).__name__
    opaque = _parts(out) is None and not isinstance(out, torch.Tensor)
    if opaque:
        return TraceError(
            f"The model returns a {name}, in which no tensors can be found.",
            "A tensor, or a mapping, sequence or dataclass of tensors, with the loss under `loss` if there is one.",
            _ACTION,
        )
    return TraceError(
        f"The model returns {name} without a floating point tensor.",
        "A loss, or outputs that a loss can be made of.",
        _ACTION,
    )
