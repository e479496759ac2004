"""Time of a step and memory of each rank, measured once while it trains, to be told beside what the plan predicts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import distributed, nn
from torch.autograd.profiler import profile
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from jupyter_autotrain.parallel.apply.ranks import Ranks

WATCHED: Final = 3  # step in which a CPU's memory is followed
FIRST: Final = 5  # steps before, which warm up
LAST: Final = 20

Tell = Callable[[tuple[float, ...], tuple[int, ...]], None]
"""Takes of each rank the seconds of a step, and the most bytes that it held (none where they could not be counted)."""


class StepClock:
    """Measures the steps from the fifth to the twentieth in each rank, then has rank 0 tell, and is gone.

    Args:
        model: As it is on this rank.
        optimizer: Whose steps are counted.
        ranks: All of them; each has such a clock.
        tell: Is told.
    """

    def __init__(self, model: nn.Module, optimizer: Optimizer, ranks: Ranks, tell: Tell) -> None:
        self._model = model
        self._optimizer = optimizer
        self._ranks = ranks
        self._tell = tell
        self._steps = 0
        self._began_s = 0.0
        self._watch: MemoryWatch | None = None
        self._peak_bytes = 0
        self._hook = optimizer.register_step_post_hook(self._stepped)

    def _stepped(self, _optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:  # noqa: ANN401 - as torch's own
        self._steps += 1
        if self._ranks.device.type == "cpu" and self._steps in {WATCHED - 1, WATCHED}:
            self._follow_memory()
        elif self._steps == FIRST:
            self._began_s = self._now_s()
        elif self._steps == LAST:
            self._hook.remove()
            self._finish((self._now_s() - self._began_s) / (LAST - FIRST))

    def _follow_memory(self) -> None:
        if self._watch:
            self._peak_bytes = self._watch.peak_bytes()
        elif not torch.autograd._profiler_enabled():  # type: ignore[attr-defined] # noqa: SLF001 - the user's own goes first
            self._watch = MemoryWatch(self._model, self._optimizer)

    def _now_s(self) -> float:
        """Return the time when what was asked of the device is done."""
        if self._ranks.device.type == "cuda":
            torch.cuda.synchronize(self._ranks.device)
        return time.perf_counter()

    def _finish(self, step_s: float) -> None:
        device = self._ranks.device
        if device.type == "cuda":
            self._peak_bytes = torch.cuda.max_memory_allocated(device)
        own = torch.tensor([step_s, self._peak_bytes], dtype=torch.float64, device=device)
        every = [own]
        if not self._ranks.are_alone:
            every = [torch.empty_like(own) for _ in range(self._ranks.count)]
            distributed.all_gather(every, own)
        if self._ranks.rank == 0:
            held = tuple(int(one[1].item()) for one in every)
            self._tell(tuple(float(one[0].item()) for one in every), held if all(held) else ())


class MemoryWatch:
    """The memory of one step on a CPU, from what the profiler says of each allocation.

    Gradients are not counted as held when it begins: they are forgotten before the next ones are made.

    Args:
        model: As it is on this rank.
        optimizer: With its states.
    """

    def __init__(self, model: nn.Module, optimizer: Optimizer) -> None:
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # else the profiler writes to stderr that it begins and ends
        self._held_bytes = held_bytes(model, optimizer)
        watched: Any = profile(profile_memory=True)
        self._profile = watched
        before = [torch.empty(1)]
        self._profile.__enter__()
        with _without_stderr():  # where torch tells of the first memory that is freed and was there before
            before.clear()

    def peak_bytes(self) -> int:
        """End the watch; return the most bytes that were held at a time."""
        self._profile.__exit__(None, None, None)
        events = [event for event in self._profile.kineto_results.events() if event.name() == "[memory]"]
        now = 0
        most = 0
        for event in sorted(events, key=lambda event: event.start_ns()):
            now += event.nbytes()
            most = max(most, now)
        return int(self._held_bytes + most)


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Drop what native code writes to stderr."""
    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def held_bytes(model: nn.Module, optimizer: Optimizer) -> int:
    """Return the bytes of this rank's weights, buffers and optimizer states; of each tensor once."""
    found = {id(tensor): local(tensor).nbytes for tensor in _tensors(model, optimizer)}
    return sum(found.values())


def _tensors(model: nn.Module, optimizer: Optimizer) -> Iterator[torch.Tensor]:
    yield from model.parameters()
    yield from model.buffers()
    for group in optimizer.param_groups:
        yield from group["params"]
    for states in optimizer.state.values():
        for value in states.values():
            if isinstance(value, torch.Tensor):
                yield value


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of a tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
