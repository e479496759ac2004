"""State of the process that no trial has: threads and tasks, what torch goes through, limits and the like.

Each entry of the table is read here and compared with what a fresh process has; what differs is told with what to do.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from types import FrameType

from jupyter_autotrain.agent import system
from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.differences import Difference, DifferenceKind, not_carried
from jupyter_autotrain.capture.items import LATEST, Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state.paths import import_text
from jupyter_autotrain.capture.syntax.codes import own_globals

_Reader = Callable[[Collection[int]], Iterator[str]]


def find(namespace: Mapping[str, object], *, uses_torch: bool) -> Iterator[Difference]:
    """Yield the differences.

    Args:
        namespace: The notebook's globals.
        uses_torch: Whether the trial uses torch.
    """
    own = own_globals(namespace)
    found = dict.fromkeys((text, what) for what, read in _TABLE for text in read(own))
    if uses_torch:
        found |= dict.fromkeys((text, "start it in the cell") for text in _torch_goes_through())
    if type(sys.stdout).__module__ == str(namespace.get("__name__")):
        found[f"{type(sys.stdout).__name__} as sys.stdout", "start it in the cell"] = None
    for text, what in found:
        yield not_carried(f"{text}: {what}")


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
    """Return the name of the notebook's function that was called first; "" for none."""
    found = ""
    while frame is not None:
        if id(frame.f_globals) in own:
            found = frame.f_code.co_qualname
        frame = frame.f_back
    return found


def _torch_goes_through() -> Iterator[str]:
    """Yield modes that were entered without `with`, and hooks of all modules."""
    overrides = sys.modules.get("torch.overrides")
    dispatch = sys.modules.get("torch.utils._python_dispatch")
    modes = [*overrides._get_current_function_mode_stack()] if overrides else []  # noqa: SLF001 - no public name
    modes += dispatch._get_current_dispatch_mode_stack() if dispatch else []  # noqa: SLF001 - as above
    for mode in modes:
        if type(mode).__name__ != "DeviceContext":
            yield f"the mode {type(mode).__name__} of torch"
    module = vars(sys.modules.get("torch.nn.modules.module", object))
    for name, value in module.items():
        if name.startswith("_global_") and value:
            yield f"torch's {name[1:]}"
    autograd = getattr(getattr(sys.modules.get("torch"), "_C", None), "_autograd", None)
    hooks = getattr(autograd, "_top_saved_tensors_default_hooks", None)
    if hooks is not None and hooks(True):
        yield "hooks of torch for saved tensors"


def _profilers(own: Collection[int]) -> Iterator[str]:
    for name, function in (("sys.setprofile", sys.getprofile()), ("sys.settrace", sys.gettrace())):
        if id(getattr(function, "__globals__", None)) in own:
            yield f"{name}({getattr(function, '__name__', '')})"


def _mask(_: Collection[int]) -> Iterator[str]:
    """Yield the mask of new files, unless it is that of the program that started this kernel."""
    own, started_by = map(system.file_mask, _pids())
    if own and started_by and own != started_by:
        yield f"os.umask(0o{own.lstrip('0')})"


def _limits(_: Collection[int]) -> Iterator[str]:
    """Yield the limits of this process that differ from those of the program that started this kernel."""
    for name in (name for name in vars(resource) if name.startswith("RLIMIT_")):
        try:
            own, started_by = (resource.prlimit(pid, getattr(resource, name)) for pid in _pids())
        except (AttributeError, OSError, ValueError):
            return  # they cannot be looked at
        if own != started_by:
            yield f"resource.setrlimit(resource.{name}, {own})"


def _pids() -> tuple[int, int]:
    return os.getpid(), os.getppid()


def _hidden_variables(_: Collection[int]) -> Iterator[str]:
    """Yield variables that `os.putenv` has set past `os.environ`."""
    try:
        lines = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    except (OSError, ValueError):
        return
    index = 0
    while (line := lines[index]) is not None:
        name, _, value = line.partition(b"=")
        if os.environb.get(name) != value and name not in {b"COLUMNS", b"LINES"}:  # of the terminal
            yield f"os.putenv({os.fsdecode(name)!r}, ...)"
        index += 1


def _figures(_: Collection[int]) -> Iterator[str]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and (numbers := pyplot.get_fignums()):
        yield f"open figures of pyplot ({', '.join(map(str, numbers))})"


_TABLE: tuple[tuple[str, _Reader], ...] = (
    ("start it in the cell", _threads),
    ("start it in the cell", _tasks),
    ("call it in the cell", _profilers),
    ("call it in the cell", _mask),
    ("call it in the cell", _limits),
    ("write it to os.environ instead", _hidden_variables),
    ("draw them in the cell", _figures),
)
"""(what to do, how to read it) for each."""


# Functions of the notebook that handle signals: set again in a trial, or told


def restore_code(slice_: Slice) -> Iterator[tuple[Item | None, Difference]]:
    """Yield the item that sets each handler again, and its difference."""
    for number in sorted(signal.valid_signals()):
        handler = signal.getsignal(number)
        owner = looking.attribute(handler, "__self__", handler)
        if slice_.home not in {looking.attribute(handler, "__module__"), looking.module_of(type(owner))}:
            continue
        name = slice_.name_of(handler)
        what = f"signal.signal({signal.Signals(number).name}, {name or type(handler).__name__})"
        if not name:
            yield None, not_carried(f"{what}: set it in the cell")
            continue
        text = f"{import_text('signal')}.signal({int(number)}, {name})"
        item = Item(f"signal {number}", "state", text, position=LATEST, eager=frozenset({name.partition(".")[0]}))
        yield item, Difference(DifferenceKind.REPLAYED, what)
