"""What is under way in the notebook and not in a trial: threads and tasks of its code, what torch goes through."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from types import FrameType

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.syntax.codes import own_globals


def find(namespace: Mapping[str, object], *, uses_torch: bool) -> Iterator[Difference]:
    """The differences.

    Args:
        namespace: The notebook's globals.
        uses_torch: Whether the trial uses torch.
    """
    own = own_globals(namespace)
    home = str(namespace.get("__name__"))
    names = [*_threads(own), *_tasks(own), *(_torch_goes_through() if uses_torch else ())]
    names += [f"{type(sys.stdout).__name__} as sys.stdout"] if type(sys.stdout).__module__ == home else []
    for name in dict.fromkeys(names):
        yield Difference(DifferenceKind.NOT_CARRIED, f"{name}: start it in the cell")


def _threads(own: Collection[int]) -> Iterator[str]:
    frames = sys._current_frames()  # noqa: SLF001 - the only way to see what threads run
    for thread in threading.enumerate():
        later = getattr(thread, "function", None)  # of a timer
        if thread is threading.current_thread():
            continue
        if function := _function_of(frames.get(thread.ident or 0), own):
            yield f"{function}, which runs in the thread {thread.name!r}"
        elif id(getattr(later, "__globals__", None)) in own:
            yield f"{getattr(later, '__qualname__', '')}, which the timer {thread.name!r} will call"


def _tasks(own: Collection[int]) -> Iterator[str]:
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:  # no event loop runs
        return
    for task in tasks - {asyncio.current_task()}:
        if function := _function_of(getattr(task.get_coro(), "cr_frame", None), own):
            yield f"{function}, which runs as the task {task.get_name()!r}"


def _function_of(frame: FrameType | None, own: Collection[int]) -> str:
    """The notebook's function that was called first; "" for none."""
    found = ""
    while frame is not None:
        if id(frame.f_globals) in own:
            found = frame.f_code.co_qualname
        frame = frame.f_back
    return found


def _torch_goes_through() -> Iterator[str]:
    """Modes that were entered without `with`, and hooks of all modules."""
    overrides = sys.modules.get("torch.overrides")
    dispatch = sys.modules.get("torch.utils._python_dispatch")
    modes = [*overrides._get_current_function_mode_stack()] if overrides else []  # noqa: SLF001 - no public name
    modes += dispatch._get_current_dispatch_mode_stack() if dispatch else []  # noqa: SLF001 - as above
    yield from (f"the mode {type(mode).__name__} of torch" for mode in modes if type(mode).__name__ != "DeviceContext")
    module = vars(sys.modules.get("torch.nn.modules.module", object))
    yield from (f"torch's {name[1:]}" for name, value in module.items() if name.startswith("_global_") and value)
