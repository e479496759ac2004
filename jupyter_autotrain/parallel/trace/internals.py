"""All uses of torch's private attributes, each where torch has no public function.

One of them leaves the model's own gradient checkpointing out of the trace: the plan decides what is recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

import torch
from torch.utils import checkpoint
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

Passed: TypeAlias = Any
"""The values that torch passes to its hooks: the function, arguments and results of any op."""


def storage_of(tensor: torch.Tensor) -> int:
    """Return what tensors that share memory have in common."""
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001 - names a storage that has no address


def tensors_in(tree: object) -> list[torch.Tensor]:
    """Return the tensors in arguments or results, in order."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def newest_node() -> int:
    """Sequence number of the autograd node made last."""
    return int(torch._C._autograd._get_sequence_nr()) - 1  # noqa: SLF001 - as make_fx does


def running_node() -> int | None:
    """Sequence number of the autograd node whose backward runs now."""
    node: Any = torch._C._current_autograd_node()  # noqa: SLF001 - as make_fx does
    return None if node is None else int(node._sequence_nr())  # noqa: SLF001 - as make_fx does


def without_modes() -> AbstractContextManager[None]:
    """Inside, ops are neither faked nor recorded."""
    mode: AbstractContextManager[None] = _disable_current_modes()
    return mode


def is_mutable(func: Passed) -> bool:
    """Return whether an op changes one of its arguments."""
    return bool(func._schema.is_mutable)  # noqa: SLF001 - the schema is the only source


def named_arguments(func: Passed, args: Passed, kwargs: Passed) -> dict[str, object]:
    """Arguments that are no tensors by their names; in a list, True stands for a tensor."""
    names = [argument.name for argument in func._schema.arguments]  # noqa: SLF001 - the schema is the only source
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return {name: _plain(value) for name, value in given.items() if not isinstance(value, torch.Tensor)}


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [True if isinstance(item, torch.Tensor) else _plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def shape_only(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same form without memory; to be called under a fake mode."""
    if tensor.layout is not torch.strided:
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)


NOTE = "the model's own gradient checkpointing is left out: the plan says what is recomputed"
_GENERATOR = "_checkpoint_without_reentrant_generator"
_FUNCTION = "CheckpointFunction"


class CheckpointingUse:
    """A note whether the model used checkpointing of its own."""

    def __init__(self) -> None:
        self.used = False


@contextmanager
def without_checkpointing() -> Iterator[CheckpointingUse]:
    """Inside, `torch.utils.checkpoint.checkpoint` only calls its function, in either of its two ways.

    Run as it is, either way would be counted wrongly: a second forward pass inside the backward pass belongs to no op,
    and fake tensors fail the comparison of the two. Callers hold the function itself (`functools.partial`), so what it
    is made of is replaced.
    """
    found = CheckpointingUse()

    def plain_generator(*_args: Passed, **_kwargs: Passed) -> Iterator[None]:
        found.used = True
        yield

    class PlainCheckpoint:
        @staticmethod
        def apply(function: Callable[..., Passed], _preserve: bool, *args: Passed) -> Passed:
            found.used = True
            return function(*args)

    before = {name: getattr(checkpoint, name) for name in (_GENERATOR, _FUNCTION)}
    setattr(checkpoint, _GENERATOR, plain_generator)
    setattr(checkpoint, _FUNCTION, PlainCheckpoint)
    try:
        yield found
    finally:
        for name, value in before.items():
            setattr(checkpoint, name, value)
