"""Values that a model's own code draws or computes, for a model on the meta device: a layer at a time.

Each layer is drawn whole from a seed of its own and its rank's part is kept, so that values do not depend on the plan.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import nn

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.shards import Where, part_of

_MOST_NAMED = 3


class Drawn:
    """Weights and buffers as `_init_weights` (transformers) or `reset_parameters` (torch) make them.

    Args:
        model: The whole model on the meta device; it stays there.
        names: Those that are asked for; others stay on the meta device.
        seed: The same on all ranks.
        device: Where values are made.
    """

    def __init__(self, model: nn.Module, names: Collection[str], seed: int, device: torch.device) -> None:
        self._model = model
        self._names = names
        self._seed = seed
        self._device = device
        self._unit_of = {name: unit for unit, inside in _units(model) for name in inside}
        self._unit = ""
        self._values: dict[str, torch.Tensor] = {}

    @property
    def weights(self) -> set[str]:
        """Names of the parameters among those that are asked for."""
        return {name for name, _ in self._model.named_parameters()} & set(self._names)

    def read(self, name: str, where: Where) -> torch.Tensor:
        """Return a part of a tensor.

        Raises:
            PlanError: No code of the model draws or computes it.
        """
        unit = self._unit_of[name]
        if name not in self._values:
            self._values = {}
            self._values = self._made(unit)
        return part_of(self._values[name], where)

    def _made(self, unit: str) -> dict[str, torch.Tensor]:
        """Return the tensors of a unit that are asked for; what its code makes of others costs nothing."""
        inside = {name for name, owner in self._unit_of.items() if owner == unit} & set(self._names)
        path = unit.removesuffix("*").removesuffix(".")
        module = copy.deepcopy(self._model.get_submodule(path))
        made = _emptied(module, path, inside, self._device)
        with torch.no_grad(), torch.random.fork_rng(self._devices()):
            torch.manual_seed((self._seed + zlib.crc32(unit.encode())) % 2**63)
            for inner_path, inner in reversed(list(module.named_modules(prefix=path))):
                self._initialize(inner_path, inner)
        _check_made(made)
        return made

    def _devices(self) -> list[int]:
        return [self._device.index or 0] if self._device.type == "cuda" else []

    def _initialize(self, path: str, module: nn.Module) -> None:
        """Run the code by which the nearest model of transformers, or the module itself, makes its values."""
        owner = self._owner(path)
        if owner is not None:
            owner._init_weights(module)  # noqa: SLF001 - the name that models of transformers give it
            return
        for name in ("reset_parameters", "_reset_parameters"):
            if hasattr(module, name):
                getattr(module, name)()
                return

    def _owner(self, path: str) -> Any:  # noqa: ANN401 - a model of transformers
        while True:
            module = self._model.get_submodule(path)
            if hasattr(module, "_init_weights"):
                return module
            if not path:
                return None
            path = path.rpartition(".")[0]


def _units(model: nn.Module, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield what is drawn together, with the names of its tensors: layers of lists, and modules without such lists.

    The tensors of a module itself that has such lists further inside are a unit "path.*".
    """
    module = model.get_submodule(path)
    prefix = f"{path}." if path else ""
    if not any(isinstance(inner, nn.ModuleList | nn.Sequential) for inner in module.modules()):
        yield path, [name for name, _ in _tensors(module, path)]
        return
    yield f"{prefix}*", [f"{prefix}{name}" for name in (*module._parameters, *module._buffers)]  # noqa: SLF001 - its own alone
    for name, child in module.named_children():
        if isinstance(module, nn.ModuleList | nn.Sequential):
            yield f"{prefix}{name}", [inside for inside, _ in _tensors(child, f"{prefix}{name}")]
        else:
            yield from _units(model, f"{prefix}{name}")


def _tensors(module: nn.Module, path: str) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters(prefix=path, remove_duplicate=False)
    yield from module.named_buffers(prefix=path, remove_duplicate=False)


def _emptied(module: nn.Module, path: str, names: Collection[str], device: torch.device) -> dict[str, torch.Tensor]:
    """Give a module tensors on a device that show whether something writes to them; return them by name."""
    made: dict[str, torch.Tensor] = {}
    again: dict[torch.Tensor, torch.Tensor] = {}
    for inner_path, inner in module.named_modules(prefix=path):
        for held in (inner._parameters, inner._buffers):  # noqa: SLF001 - torch has no other way that takes both
            for own, old in held.items():
                name = f"{inner_path}.{own}".lstrip(".")
                if old is not None and name in names:
                    value = again.setdefault(old, _marked(old, device))
                    held[own] = made[name] = value
    return made


def _marked(old: torch.Tensor, device: torch.device) -> torch.Tensor:
    new = torch.empty_like(old, device=device)
    if new.dtype is not torch.bool:
        new.fill_(_mark(new))
    return nn.Parameter(new, requires_grad=False) if isinstance(old, nn.Parameter) else new


def _mark(tensor: torch.Tensor) -> float:
    is_integer = not tensor.is_floating_point() and not tensor.is_complex()
    return torch.iinfo(tensor.dtype).min if is_integer else float("nan")


def _check_made(made: dict[str, torch.Tensor]) -> None:
    """Check that each value was drawn or computed.

    Raises:
        PlanError: Some were not.
    """
    missing = [name for name, value in made.items() if value.numel() and _is_marked(value)]
    if missing:
        more = " and more" if len(missing) > _MOST_NAMED else ""
        raise PlanError(
            f"Nothing draws or computes {', '.join(missing[:_MOST_NAMED])}{more}.",
            "A `reset_parameters` of the module that holds it, or `_init_weights` as models of transformers have it.",
            "Write one, give the values (weights=folder), or make the model outside of torch.device('meta').",
        )


def _is_marked(value: torch.Tensor) -> bool:
    if value.is_floating_point() or value.is_complex():
        return bool(value.isnan().any())
    return value.dtype is not torch.bool and bool((value == _mark(value)).any())
