"""The model's own gradient checkpointing, left out of the trace: the plan decides what is recomputed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch.utils import checkpoint

from jupyter_autotrain.parallel.trace.internals import Passed

NOTE = "the model's own gradient checkpointing is left out: the plan says what is recomputed"
_GENERATOR = "_checkpoint_without_reentrant_generator"
_FUNCTION = "CheckpointFunction"


class CheckpointingUse:
    """Whether the model used checkpointing."""

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
