"""Checkpoints of a model on any plan, which load on any other plan or in one process (torch's distributed format).

Each rank writes its shards. A checkpoint is a folder `checkpoint-STEP` that gets its name when all of it is on the
disk, so that a killed rank leaves the one before; the two newest are kept. It holds weights by name (those of 32 bits,
where the model's have 16), optimizer states and options, schedulers, the place in the loader, and each rank's random
numbers.
"""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import torch
from torch import distributed, nn
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import _StridedShard
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from jupyter_autotrain.agent import wire
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.ranks import random_state, set_random_state
from jupyter_autotrain.parallel.apply.shards import spread_as
from jupyter_autotrain.parallel.apply.stepping import Stepper

KEPT: Final = 2
_NAME = re.compile(r"checkpoint-(\d{12})")
_MODEL = "model/"
_STATES = "optimizer/"
_TRAINING = "training"
_RANDOM = "random/"


class TrainingState:
    """Everything of a training run that a checkpoint holds.

    Args:
        model: As `apply` has returned it.
        optimizer: Its optimizer.
        loader: Its loader; None: the place in it is not kept.
        schedulers: Those of the optimizer.
    """

    def __init__(self, model: nn.Module, optimizer: Optimizer, loader: Any, schedulers: Iterable[LRScheduler]) -> None:  # noqa: ANN401 - any iterable
        self._model = model
        self._optimizer = optimizer
        self._loader = loader
        self._schedulers = list(schedulers)
        self._stepper = Stepper.of(optimizer)
        masters = self._stepper.masters if self._stepper else {}
        names = self._stepper.exchanged.names if self._stepper else {}
        weights = {names.get(name, name): weight for name, weight in model.named_parameters()}
        self._weights = {name: masters.get(weight, weight) for name, weight in weights.items()}

    def save(self, folder: Path, step: int) -> None:
        """Write a checkpoint.

        Raises:
            PlanError: Microbatches of a step are still to come, whose gradients it would not hold.
        """
        if self._stepper and not self._stepper.at_end:
            raise PlanError(
                "A checkpoint was asked for between the microbatches of a step.",
                "Gradients that are still accumulated are not saved.",
                "Save after a whole step: plan.apply gives as many batches a step as it has microbatches.",
            )
        draft = folder / f"checkpoint-{step:012d}{wire.DRAFT}"
        if _rank() == 0:
            shutil.rmtree(draft, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
        _wait_for_all()
        planner = DefaultSavePlanner(flatten_state_dict=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that one process is one process
            save(self._held(), checkpoint_id=draft, planner=planner, no_dist=not distributed.is_initialized())
        if _rank() == 0:
            _publish(draft, folder)
        _wait_for_all()

    def load(self, folder: Path) -> int | None:
        """Take on the newest checkpoint of a folder; return its step, or None where there is none."""
        found = _checkpoints(folder)
        if not found:
            return None
        there = FileSystemReader(found[-1]).read_metadata().state_dict_metadata
        wanted = {key: value for key, value in self._targets(there).items() if key in there}
        planner = DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that one process is one process
            load(wanted, checkpoint_id=found[-1], planner=planner, no_dist=not distributed.is_initialized())
        self._take(wanted)
        return _step(found[-1])

    def _model_state(self) -> dict[str, Any]:
        return {**self._model.state_dict(), **{name: weight.detach() for name, weight in self._weights.items()}}

    def _held(self) -> dict[str, Any]:
        """Return what this rank has, under flat keys."""
        held = {_MODEL + name: _in_blocks(value) for name, value in self._model_state().items()}
        for name, weight in self._weights.items():
            for key, value in self._optimizer.state.get(weight, {}).items():
                held[f"{_STATES}{name}/{key}"] = _in_blocks(value)
        groups = list(map(_options, self._optimizer.param_groups))
        place = getattr(self._loader, "place", None)
        schedulers = [scheduler.state_dict() for scheduler in self._schedulers]
        held[_TRAINING] = {"groups": groups, "schedulers": schedulers, "place": place}
        held[f"{_RANDOM}{_rank()}"] = random_state()
        return held

    def _targets(self, there: dict[str, Any]) -> dict[str, Any]:
        """Return where to load to: weights as they lie here, and states like them."""
        targets = {_MODEL + name: _block_for(value) for name, value in self._model_state().items()}
        targets |= {_TRAINING: {}, f"{_RANDOM}{_rank()}": {}}
        for name, key, full in _state_keys(there):
            if name in self._weights:
                targets[full] = _like(self._weights[name], there[full]) if key else None
        return targets

    def _take(self, loaded: dict[str, Any]) -> None:
        """Give model, optimizer, schedulers, loader and generators what was loaded."""
        state = {key.removeprefix(_MODEL): value for key, value in loaded.items() if key.startswith(_MODEL)}
        here = self._model_state()
        known = self._model.state_dict().keys()  # a tied weight may have another name in the whole model
        self._model.load_state_dict({name: _spread_as(here[name], state[name]) for name in state.keys() & known})
        for name, key, full in _state_keys(loaded):
            weight = self._weights[name]
            self._optimizer.state[weight][key] = _spread_as(weight, loaded[full])
        training = loaded[_TRAINING]
        for group, options in zip(self._optimizer.param_groups, training["groups"], strict=True):
            group.update(options)
        for scheduler, values in zip(self._schedulers, training["schedulers"], strict=True):
            scheduler.load_state_dict(values)
        if training["place"] is not None and hasattr(self._loader, "place"):
            self._loader.place = training["place"]
        random = loaded.get(f"{_RANDOM}{_rank()}")
        if random is not None:
            set_random_state(random)


def _options(group: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key != "params"}


def _state_keys(keys: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (weight, state, whole key) of the optimizer's states among some keys."""
    for full in keys:
        if full.startswith(_STATES):
            name, _, key = full.removeprefix(_STATES).rpartition("/")
            yield name, key, full


def _like(weight: torch.Tensor, saved: object) -> Any:  # noqa: ANN401 - a tensor, or what the optimizer keeps else
    """Return an empty state: sharded as its weight is where it has the weight's shape."""
    if not isinstance(saved, TensorStorageMetadata):
        return None
    if saved.size == weight.shape:
        return _block_for(torch.zeros_like(weight, dtype=saved.properties.dtype, requires_grad=False))
    return torch.zeros(saved.size, dtype=saved.properties.dtype)


def _is_interleaved(value: object) -> bool:
    """Return whether ranks have pieces of a tensor that are no blocks of it: their share of each of several parts."""
    return isinstance(value, DTensor) and isinstance(value.placements[-1], _StridedShard)


def _in_blocks(value: Any) -> Any:  # noqa: ANN401 - whatever a model or an optimizer keeps
    """Return what the format can write, which knows blocks alone: a tensor in pieces is written whole."""
    return value.full_tensor() if _is_interleaved(value) else value


def _block_for(value: Any) -> Any:  # noqa: ANN401 - as above
    """Return where to load a value to."""
    if not _is_interleaved(value):
        return value
    return torch.zeros(value.shape, dtype=value.dtype, device=value.device)


def _spread_as(here: Any, loaded: Any) -> Any:  # noqa: ANN401 - as above
    """Return a loaded tensor in the pieces that the one here has."""
    if not _is_interleaved(here) or not isinstance(loaded, torch.Tensor) or loaded.shape != here.shape:
        return loaded
    return spread_as(loaded, here)


def _rank() -> int:
    return distributed.get_rank() if distributed.is_initialized() else 0


def _wait_for_all() -> None:
    if distributed.is_initialized():
        distributed.barrier()


def _publish(draft: Path, folder: Path) -> None:
    """Give a written checkpoint its name, and remove those before the newest ones."""
    final = draft.with_name(draft.name.removesuffix(wire.DRAFT))
    shutil.rmtree(final, ignore_errors=True)
    draft.replace(final)
    for old in _checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def _checkpoints(folder: Path) -> list[Path]:
    """Return the whole checkpoints of a folder, oldest first."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if _NAME.fullmatch(path.name)), key=_step)


def _step(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else -1
