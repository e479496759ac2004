"""A model on the meta device made real on each rank: its part of each weight, read from files or drawn."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.drawing import Drawn
from jupyter_autotrain.parallel.apply.ranks import Ranks
from jupyter_autotrain.parallel.apply.shards import Where, where_of
from jupyter_autotrain.parallel.apply.weight_files import WeightFiles, listed


class Start:
    """The values that a model on the meta device begins with.

    Args:
        model: The whole model, before anything is split.
        weights: Folder or file of safetensors; None: all values are drawn.
        seed: The same on all ranks.
        device: That of this rank.
    """

    def __init__(self, model: nn.Module, weights: str | Path | None, seed: int, device: torch.device) -> None:
        whole = copy.deepcopy(model)  # costs no memory, and keeps which names are tied
        self._device = device
        self._names = _tied_names(whole)
        first = {names[0] for names in self._names.values()}
        self._files = None if weights is None else WeightFiles(Path(weights), whole, self._names)
        drawn = first - (self._files.names if self._files else set())
        self._drawn = Drawn(whole, drawn, seed, device)

    @property
    def told(self) -> str:
        """Return what a reader must know of weights that the files do not have."""
        drawn = sorted(self._drawn.weights) if self._files else []
        return f"The files have no {listed(drawn)}, which are drawn at random." if drawn else ""

    def fill(self, model: nn.Module) -> None:
        """Give this rank's weights and buffers their values; what is tied stays so."""
        made: dict[torch.Tensor, torch.Tensor] = {}
        for path, module in model.named_modules(remove_duplicate=False):
            for held in (module._parameters, module._buffers):  # noqa: SLF001 - torch has no other way that takes both
                for own, old in held.items():
                    if old is None or not old.is_meta:
                        continue
                    if old not in made:
                        made[old] = self._real(f"{path}.{own}".lstrip("."), old)
                    held[own] = made[old]
            _move_buffers(module, self._device)

    def _real(self, name: str, old: torch.Tensor) -> torch.Tensor:
        part = old.to_local() if isinstance(old, DTensor) else old
        local = torch.empty_like(part, device=self._device)
        if local.numel():
            local.copy_(self._read(name, where_of(old)))
        new = _distributed(local, old) if isinstance(old, DTensor) else local
        if isinstance(old, nn.Parameter):
            new = nn.Parameter(new, requires_grad=old.requires_grad)
            new.__dict__.update(old.__dict__)
        return new

    def _read(self, name: str, where: Where) -> torch.Tensor:
        first = self._names[name][0]
        if self._files and first in self._files.names:
            return self._files.read(first, where)
        return self._drawn.read(first, where)


def start_of(model: nn.Module, weights: str | Path | None, ranks: Ranks) -> Start | None:
    """Return the values of a model on the meta device; None for one that has values.

    Raises:
        PlanError: Some of its weights have values and others have not, or files are given for one that has values; or
            the files are not of this model.
    """
    on_meta = [name for name, weight in model.named_parameters() if weight.is_meta]
    real = [name for name, weight in model.named_parameters() if not weight.is_meta]
    if on_meta and not real:
        seed = ranks.same(int(torch.randint(2**62, ()).item()))
        return Start(model, weights, seed, ranks.device)
    if on_meta:
        raise PlanError(
            f"{on_meta[0]} is on the meta device, and {real[0]} has values.",
            "A model whose weights are all on the meta device, or none.",
            "Make all of it under `with torch.device('meta'):`.",
        )
    if weights is not None:
        raise PlanError(
            f"Weights are given, and {type(model).__name__} has values already.",
            "A model on the meta device, of which each rank reads its part.",
            "Make it under `with torch.device('meta'):`, or leave out `weights`.",
        )
    return None


def _distributed(local: torch.Tensor, old: DTensor) -> DTensor:
    """Return a distributed tensor of the form of another."""
    return DTensor.from_local(
        local, old.device_mesh, old.placements, run_check=False, shape=old.shape, stride=old.stride()
    )


def _move_buffers(module: nn.Module, device: torch.device) -> None:
    for name, buffer in module._buffers.items():  # noqa: SLF001 - its own alone
        if buffer is not None and buffer.device.type != device.type:
            module._buffers[name] = buffer.to(device)  # noqa: SLF001 - as above


def _tied_names(model: nn.Module) -> dict[str, list[str]]:
    """Return for each name of a weight or buffer all names of it."""
    names: dict[Any, list[str]] = {}
    for name, tensor in _named_tensors(model):
        names.setdefault(tensor, []).append(name)
    return {name: every for every in names.values() for name in every}


def _named_tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)
