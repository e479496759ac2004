"""The user's optimizer on a spread model: its weights, accumulation, clipping, and the schedulers that drive it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MethodType
from typing import Any, Final

import torch
from torch import nn
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.clipping import clip
from jupyter_autotrain.parallel.apply.fused import FusedShard
from jupyter_autotrain.parallel.apply.sharding import Synchronization
from jupyter_autotrain.parallel.apply.shards import spread_as

_STEPPER: Final = "_stepper_of_plan"
_SCHEDULED: Final = "_wrapped_by_lr_sched"  # what schedulers set on the step of their optimizer


def check_owned(model: nn.Module, optimizer: Optimizer) -> None:
    """Check that an optimizer's parameters are the model's.

    Raises:
        PlanError: Some are not; ranks would not exchange their gradients.
    """
    known = set(model.parameters())
    strange = sum(p not in known for group in optimizer.param_groups for p in group["params"])
    if strange:
        raise PlanError(
            f"{strange} of the optimizer's parameters are not the model's.",
            "An optimizer of the model that is given with it.",
            "Give the model that holds them all, or make the optimizer from model.parameters().",
        )


def follow(optimizer: Optimizer, replaced: Mapping[torch.Tensor, nn.Parameter]) -> None:
    """Put weights in the place of others, with the optimizer's states of them."""
    for group in optimizer.param_groups:
        group["params"] = [replaced.get(old, old) for old in group["params"]]
    for old in [old for old in optimizer.state if replaced.get(old, old) is not old]:
        states = optimizer.state.pop(old)
        new = replaced[old]
        optimizer.state[new] = {key: _like(value, old, new) for key, value in states.items()}


def drop(optimizer: Optimizer, others: Collection[torch.Tensor]) -> None:
    """Take weights that other ranks have out of an optimizer, with their states."""
    for group in optimizer.param_groups:
        group["params"] = [weight for weight in group["params"] if weight not in others]
    for weight in others:
        optimizer.state.pop(weight, None)


def use_single_kernels(optimizer: Optimizer) -> None:
    """Switch off kernels over lists of weights (`foreach`, `fused`) where weights lie on several meshes.

    torch cannot mix them in one call.
    """
    for group in optimizer.param_groups:
        meshes = {p.device_mesh if isinstance(p, DTensor) else None for p in group["params"]}
        for kernel in ("foreach", "fused"):
            if len(meshes) > 1 and group.get(kernel):
                group[kernel] = False


def _like(value: Any, old: torch.Tensor, new: nn.Parameter) -> Any:  # noqa: ANN401 - whatever the optimizer keeps
    """Return a state of a weight, of the weight's format and sharded as it is."""
    if not isinstance(value, torch.Tensor) or value.shape != old.shape:
        return value
    same = value.to(new.device, new.dtype)
    if not isinstance(new, DTensor):
        return same
    if any(isinstance(placement, FusedShard) for placement in new.placements):
        return spread_as(same, new)
    return distribute_tensor(same, new.device_mesh, new.placements)


class Masters:
    """32-bit copies of 16-bit weights, which the optimizer updates in their place.

    Args:
        optimizer: Its parameters are replaced.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        weights = [p for group in optimizer.param_groups for p in group["params"] if p.element_size() == 2]
        self.by_weight = {weight: nn.Parameter(weight.detach().float()) for weight in weights}
        follow(optimizer, self.by_weight)

    def take_gradients(self) -> None:
        """Give the copies the gradients of the weights."""
        for weight, master in self.by_weight.items():
            master.grad = None if weight.grad is None else weight.grad.float()

    def write_back(self) -> None:
        """Round the copies into the weights."""
        with torch.no_grad():
            for weight, master in self.by_weight.items():
                weight.copy_(master)

    def forget_gradients(self) -> None:
        """Drop the gradients of the weights, which the optimizer does not know."""
        for weight in self.by_weight:
            weight.grad = None


class Stepper:
    """Steps that an optimizer makes after some microbatches: it keeps its object, and so its schedulers.

    Args:
        optimizer: Its `step` and `zero_grad` act at the end of a step only.
        exchanged: What ranks exchange.
        microbatches: Parts of a step.
        max_norm: Norm that gradients are clipped to; None: they are not.
        masters: Copies that the optimizer updates; None where it updates the weights themselves.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        exchanged: Synchronization,
        microbatches: int,
        max_norm: float | None = None,
        masters: Masters | None = None,
    ) -> None:
        self._optimizer = optimizer
        self.exchanged = exchanged
        self._microbatches = microbatches
        self._max_norm = max_norm
        self._masters = masters
        self._schedulers: tuple[LRScheduler, ...] = ()
        self._done = 0
        self._step = optimizer.step
        self._zero_grad = optimizer.zero_grad
        exchanged.set_last(last=microbatches == 1)

    @classmethod
    def of(cls, optimizer: Optimizer) -> Stepper | None:
        """Return the stepper of an optimizer that `apply` has returned."""
        return getattr(optimizer, _STEPPER, None)

    @property
    def masters(self) -> Mapping[nn.Parameter, nn.Parameter]:
        """16-bit weight to the copy that the optimizer updates in its place."""
        return self._masters.by_weight if self._masters else {}

    @property
    def at_end(self) -> bool:
        """True when the last call of `step` has ended a step."""
        return self._done == 0

    def install(self, schedulers: Iterable[LRScheduler]) -> None:
        """Replace the optimizer's methods, and let its schedulers go on at the end of a step only."""
        setattr(self._optimizer, _STEPPER, self)
        self._schedulers = tuple(schedulers)
        if self._microbatches == 1 and self._max_norm is None and self._masters is None and not self.exchanged.tied:
            return

        def step(_optimizer: Optimizer, closure: Any = None) -> Any:  # noqa: ANN401 - as torch's own
            return self.step(closure)

        def zero_grad(_optimizer: Optimizer, set_to_none: bool = True) -> None:
            self.zero_grad(set_to_none=set_to_none)

        if _has_scheduler(self._optimizer):
            setattr(step, _SCHEDULED, True)
        self._optimizer.step = MethodType(step, self._optimizer)  # type: ignore[method-assign]
        self._optimizer.zero_grad = MethodType(zero_grad, self._optimizer)  # type: ignore[method-assign]
        for scheduler in self._schedulers:
            self._hold_back(scheduler)

    def _hold_back(self, scheduler: LRScheduler) -> None:
        kind = type(scheduler)

        def step(held_back: LRScheduler, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as torch's own
            if self.at_end:
                kind.step(held_back, *args, **kwargs)

        scheduler.__class__ = type(kind.__name__, (kind,), {"step": step})  # its attributes are its state

    def step(self, closure: Any = None) -> Any:  # noqa: ANN401 - as torch's own
        """Count a microbatch; after the last one average and clip the gradients, and step.

        Raises:
            PlanError: A scheduler was made after `apply`, which would go on with each microbatch.
        """
        check_schedulers(self._optimizer, self._schedulers, self._microbatches)
        self._done = (self._done + 1) % self._microbatches
        stepped = None
        if self.at_end:
            self._finish_gradients()
            stepped = self._step(closure) if closure else self._step()
            if self._masters:
                self._masters.write_back()
        self.exchanged.set_last(last=self._done == self._microbatches - 1)
        return stepped

    def zero_grad(self, *, set_to_none: bool = True) -> None:
        """Forget gradients, unless microbatches of this step still come."""
        if self.at_end:
            self._zero_grad(set_to_none=set_to_none)
            if self._masters:
                self._masters.forget_gradients()

    def _finish_gradients(self) -> None:
        self.exchanged.sum_tied()
        if self._masters:
            self._masters.take_gradients()
        weights = [p for group in self._optimizer.param_groups for p in group["params"] if p.grad is not None]
        if self._microbatches > 1:
            for weight in weights:
                weight.grad.mul_(1 / self._microbatches)
        if self._max_norm is not None:
            tied = {self.masters.get(weight, weight) for weight, _ in self.exchanged.tied}
            clip(weights, self._max_norm, stages=self.exchanged.stages, tied=tied)


def check_schedulers(optimizer: Optimizer, schedulers: Iterable[LRScheduler], microbatches: int) -> None:
    """Check that schedulers that would go on with every microbatch are given.

    Raises:
        PlanError: The optimizer has a scheduler, the plan accumulates, and none is given.
    """
    if microbatches > 1 and not list(schedulers) and _has_scheduler(optimizer):
        raise PlanError(
            f"The optimizer has a learning-rate scheduler, and the plan accumulates {microbatches} microbatches.",
            "Schedulers go on once a step, not with each microbatch.",
            "Make it before, and give it: plan.apply(model, optimizer, loader, schedulers=[scheduler]).",
        )


def _has_scheduler(optimizer: Optimizer) -> bool:
    return hasattr(optimizer.step, _SCHEDULED)
