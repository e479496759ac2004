"""One rank of a rehearsal: the loop runs in a fake process group, and what it exchanges, reads and holds is recorded.

torch's fake process group knows the number of ranks and moves nothing. Values that would come from other ranks are
this rank's own or arbitrary, those of other pipeline stages zeros, so that no number that is computed means anything;
shapes, order and errors do.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from unittest import mock

import torch
from torch import distributed, nn
from torch._C._distributed_c10d import GradBucket, _resolve_process_group
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining._utils import (
    _derive_grad_metas,
    _StageBackwardMeta,
    _StageForwardMeta,
    extract_tensor_metas,
)
from torch.distributed.tensor.debug import _clear_sharding_prop_cache
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.measuring import MemoryWatch
from jupyter_autotrain.parallel.rehearse.outcome import RECV, SEND, Exchange, Recording

STEPS: Final = 2  # so that what a loop does between steps is seen, too
_WAITS: Final = frozenset(("wait_tensor", "wrap_tensor_autograd"))  # for what was exchanged before
_OWN: Final = ("/torch/", "/jupyter_autotrain/", "/transformers/", "<frozen", "/contextlib.py", "/functools.py")


class _EnoughSteps(BaseException):
    """Ends a loop after the steps of a rehearsal; no `except Exception` of the user catches it."""


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's
    """Records what one rank exchanges, what its model is given, and how far it comes."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self.recording = recording
        self._model: nn.Module | None = None
        self._watch: MemoryWatch | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401 - as torch's own
        if func.namespace in {"c10d", "_c10d_functional"}:
            name = func.name().split("::")[1].split(".")[0].strip("_")
            if name not in _WAITS:
                self._exchanged(name, torch.utils._pytree.tree_leaves(args))  # noqa: SLF001 - torch has no other
        return func(*args, **(kwargs or {}))

    def _exchanged(self, name: str, args: list[Any]) -> None:
        tensors = [one for one in args if isinstance(one, torch.Tensor)]
        shapes = tuple(f"{list(one.shape)} {str(one.dtype)[6:]}" for one in tensors)
        ranks = _ranks_of(args)
        if name in {SEND, RECV}:
            ranks = (ranks[next(one for one in args if isinstance(one, int))],)
        if name == RECV:
            for one in tensors:
                one.zero_()
        self.recording.exchanges.append(Exchange(name, shapes, _user_line(), ranks))

    def called(self, module: nn.Module, args: Any) -> None:  # noqa: ANN401 - whatever a module takes
        """Note what a model is given; modules inside of it do not count."""
        if self._model is None:
            self._model = module
        if module is self._model:
            leaves = torch.utils._pytree.tree_leaves(args)  # noqa: SLF001 - torch has no other
            shapes = tuple(tuple(one.shape) for one in leaves if isinstance(one, torch.Tensor))
            self.recording.inputs.append(shapes)

    def stepped(self, optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:  # noqa: ANN401 - as torch's own
        """Count a step; the last one ends the loop."""
        self.recording.steps += 1
        if self.recording.steps == STEPS - 1 and self._model is not None:
            self._watch = MemoryWatch(self._model, optimizer)
        elif self.recording.steps == STEPS:
            self.end_watch()
            raise _EnoughSteps

    def end_watch(self) -> None:
        """Note the most bytes of the step that was watched."""
        if self._watch:
            self.recording.peak_bytes = self._watch.peak_bytes()
            self._watch = None


def recorded(loop: Callable[[], object], rank: int, ranks: int) -> Recording:
    """Run a loop as one of some ranks until it has made its steps, raises or ends.

    Raises:
        PlanError: This process is in a process group.
    """
    if distributed.is_initialized():
        raise PlanError(
            "This process is in a process group already.",
            "A rehearsal makes a fake one of its own.",
            "End the other (torch.distributed.destroy_process_group()), or rehearse in another process.",
        )
    recording = Recording(rank)
    recorder = _Recorder(recording)
    with _as_rank(rank, ranks), _watched(recorder), torch.random.fork_rng(devices=[]):
        try:
            loop()
        except _EnoughSteps:
            pass
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - whatever the user's loop raises is what is found
            recording.error = f"{type(fault).__name__}: {' '.join(str(fault).split())}"
            recording.line = _line_of(fault)
    return recording


@contextlib.contextmanager
def _as_rank(rank: int, ranks: int) -> Iterator[None]:
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
    with mock.patch.dict(os.environ, {name: str(value) for name, value in variables.items()}):
        distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)
        try:
            with _stand_ins():
                yield
        finally:
            distributed.destroy_process_group()
            _clear_sharding_prop_cache()  # type: ignore[no-untyped-call] # torch's; it holds groups that are gone


@contextlib.contextmanager
def _watched(recorder: _Recorder) -> Iterator[None]:
    on_call = nn.modules.module.register_module_forward_pre_hook(recorder.called)
    on_step = register_optimizer_step_post_hook(recorder.stepped)
    try:
        with recorder:
            yield
    finally:
        recorder.end_watch()
        on_step.remove()
        on_call.remove()


@contextlib.contextmanager
def _stand_ins() -> Iterator[None]:
    """Replace what needs answers of other ranks: gradient buckets of DDP, exchanged objects, forms between stages."""
    made = DistributedDataParallel.__init__

    def make(self: DistributedDataParallel, *args: Any, **words: Any) -> None:  # noqa: ANN401 - as torch's own
        made(self, *args, **words)
        self.register_comm_hook(None, _reduce_bucket)

    def gather(objects: list[Any], own: Any, group: Any = None) -> None:  # noqa: ANN401 - as torch's own
        distributed.barrier(group)
        objects[:] = [own] * len(objects)

    def broadcast(_objects: list[Any], *_args: Any, **_words: Any) -> None:  # noqa: ANN401 - as torch's own
        distributed.barrier()

    with (
        mock.patch.object(distributed, "init_process_group"),
        mock.patch.object(distributed, "destroy_process_group"),
        mock.patch.object(DistributedDataParallel, "__init__", make),
        mock.patch.object(distributed, "all_gather_object", gather),
        mock.patch.object(distributed, "broadcast_object_list", broadcast),
        mock.patch.object(PipelineStage, "_send_meta"),
        mock.patch.object(PipelineStage, "_recv_meta", _form_of_neighbour),
    ):
        yield


def _reduce_bucket(_state: object, bucket: Any) -> torch.futures.Future[torch.Tensor]:  # noqa: ANN401 - torch's own class is not public
    distributed.all_reduce(bucket.buffer())
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


# torch looks at the types of a hook's arguments, which must not be texts.
_reduce_bucket.__annotations__.update({"bucket": GradBucket, "return": torch.futures.Future[torch.Tensor]})


def _form_of_neighbour(stage: Any, neighbour: int) -> Any:  # noqa: ANN401 - torch's own classes are not public
    """Return what a stage is told of what it receives: the form of what enters its layers, or of their gradients."""
    if neighbour > stage.stage_index:
        return _StageBackwardMeta(backward_metas=_derive_grad_metas(stage._stage_meta.outputs))  # noqa: SLF001 - as above
    return _StageForwardMeta(forward_metas=extract_tensor_metas(stage.submod.entering()) or ())


def _ranks_of(args: list[Any]) -> tuple[int, ...]:
    """Return the ranks of the process group among the arguments of a collective; of functional ones it is the last."""
    held = next((one for one in args if isinstance(one, torch.ScriptObject)), None)
    group = _resolve_process_group(args[-1]) if held is None else distributed.ProcessGroup.unbox(held)
    return tuple(distributed.get_process_group_ranks(group))


def _user_line() -> str:
    """Return the innermost line that is neither torch's nor this package's."""
    frame = sys._getframe(3)  # noqa: SLF001 - the cheap way
    found: Any = frame
    while found is not None and _is_own(found.f_code.co_filename):
        found = found.f_back
    return "" if found is None else _place(found.f_code.co_filename, found.f_lineno)


def _line_of(fault: BaseException) -> str:
    """Return the innermost of these lines that an error came from."""
    line = ""
    trace = fault.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not _is_own(name):
            line = _place(name, trace.tb_lineno)
        trace = trace.tb_next
    return line


def _is_own(file: str) -> bool:
    return any(part in file for part in _OWN)


def _place(file: str, line: int) -> str:
    return f"{Path(file).name} line {line}"
