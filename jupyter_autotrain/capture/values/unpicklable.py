"""The parts of a value that cannot travel to another process: the reason, and the place in the value."""

from __future__ import annotations

import asyncio
import ctypes
import io
import mmap
import socket
import subprocess
import sys
import tempfile
import threading
import types
import weakref
from collections.abc import Iterator
from itertools import islice

from jupyter_autotrain.capture import looking

COMPUTED = "a tensor that autograd computed"
_SEEN_AT_MOST = 20_000
_DEPTH = 6
_OF_A_MODULE = {"_parameters", "_buffers", "_modules"}
_IN_MEMORY = (io.BytesIO, io.StringIO)
_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((io.IOBase, tempfile._TemporaryFileWrapper), "an open file"),  # noqa: SLF001 - it has no public name
    ((types.GeneratorType, types.AsyncGeneratorType), "a generator: it can be neither copied nor started again"),
    ((types.CoroutineType, asyncio.Future), "a running asynchronous task"),
    (looking.LOCKS, "a lock"),
    ((threading.Thread,), "a running thread"),
    ((threading.local,), "data of one thread"),
    ((ctypes.Array,), "an array of ctypes"),
    ((socket.socket,), "a network connection"),
    ((subprocess.Popen,), "a running process"),
    ((asyncio.AbstractEventLoop,), "an event loop"),
    ((mmap.mmap, memoryview), "a view of this process's memory"),
    ((types.FrameType, types.TracebackType), "a stack frame of this process"),
    ((weakref.ref,), "a weak reference"),
)  # fmt: skip
_LINES_OF_A_SHELL = frozenset({"IPython.utils.text"})  # `x = !ls` gives a list from there
_BY_MODULE = (
    ("dbm", "a database connection"),
    ("shelve", "a database connection"),
    ("sqlite3", "a database connection"),
    ("psycopg", "a database connection"),
    ("pymysql", "a database connection"),
    ("sqlalchemy.engine", "a database connection"),
    ("sqlalchemy.orm.session", "a database connection"),
    ("multiprocessing", "a handle to other processes"),
    ("concurrent.futures", "a pool of workers"),
    ("torch.jit", "a TorchScript object"),
    ("IPython", "a part of IPython, which trials do not have"),
    ("ipykernel", "a part of the kernel"),
    ("ipywidgets", "a widget, which lives in this notebook only"),
)


class UnpicklableError(Exception):
    """A value cannot be pickled; the text says why."""


def reason(value: object) -> str:
    """Return the reason why this very object cannot travel.

    It is "" when it can, as far as one can see from outside.
    """
    module = looking.module_of(type(value))
    if looking.is_kind(value, (type, *_IN_MEMORY)) or module in _LINES_OF_A_SHELL:
        return ""
    for kinds, text in _KINDS:
        if looking.is_kind(value, kinds):
            return text
    for prefix, text in _BY_MODULE:
        if module == prefix or module.startswith((f"{prefix}.", f"{prefix}_", "_" + prefix)):
            return text
    return _elsewhere(value)


def find(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield everything inside a value that cannot travel, with the reason.

    Each comes with the way to reach it, such as `cfg['log']`.
    """
    todo = [(name, value, 0)]
    for path, item, depth in _walk(todo):
        if why := reason(item):
            yield path, why
        elif depth < _DEPTH:
            todo.extend((path + step, inner, depth + 1) for step, inner in parts(item))


def name_in(path: str) -> str:
    """Return the variable that a way such as `cfg['log']` begins with."""
    return path.partition("[")[0].partition(".")[0]


def inside(value: object) -> Iterator[object]:
    """Yield a value and what is inside it."""
    todo = [("", value, 0)]
    for _, item, depth in _walk(todo):
        yield item
        todo.extend(("", inner, depth + 1) for _, inner in parts(item))


def _walk(todo: list[tuple[str, object, int]]) -> Iterator[tuple[str, object, int]]:
    """Yield the entries of a list that grows meanwhile, each object once."""
    seen: set[int] = set()
    for entry in todo:
        if id(entry[1]) not in seen and len(seen) < _SEEN_AT_MOST:
            seen.add(id(entry[1]))
            yield entry


def parts(value: object) -> Iterator[tuple[str, object]]:
    """Yield the parts of a container or an instance, each as (the step to it, the object).

    Numbers and text have none.
    """
    for key, item in islice(looking.items(value), _SEEN_AT_MOST):
        yield f"[{key!r}]" if isinstance(key, str | int | float) else f"[a {type(key).__name__}]", item
    for index, item in enumerate(islice(looking.elements(value), _SEEN_AT_MOST)):
        if not looking.is_kind(item, (int, float, str, bytes, complex)):
            yield f"[{index}]", item
    if not looking.is_kind(value, (type, types.ModuleType, types.FunctionType)) and not _pickles_itself(value):
        for attribute, item in list(looking.own_attributes(value).items()):
            yield from _attribute(attribute, item)


def _attribute(name: str, item: object) -> Iterator[tuple[str, object]]:
    """Yield an attribute.

    Those that a torch module keeps in dictionaries come by the names that people write.
    """
    if name in _OF_A_MODULE and isinstance(item, dict):
        for key, inner in item.items():
            yield f".{key}", inner
    else:
        yield f".{name}", item


def _pickles_itself(value: object) -> bool:
    """Tell whether an object leaves out on purpose the parts of it that cannot travel.

    A logger, or a queue with its lock, does so.
    """
    methods = [getattr(type(value), name, None) for name in ("__getstate__", "__reduce__")]
    # Compared by identity: a compiled method may have no hash.
    own = [method for method in methods if method is not object.__getstate__ and method is not object.__reduce__]
    return any(getattr(method, "__module__", "") != "torch.nn.modules.module" for method in own)


def _elsewhere(value: object) -> str:
    """Return the reason why a tensor cannot travel: it lives elsewhere, or has a graph."""
    torch = sys.modules.get("torch")
    if torch is None or not looking.is_kind(value, torch.Tensor):
        return ""
    assert isinstance(value, torch.Tensor)
    if value.device.type == "cpu":
        return f"{COMPUTED}, whose graph cannot travel" if value.grad_fn is not None else ""
    if value.device.type == "meta":
        return "a tensor without data (device meta)"
    return f"a tensor on {value.device}: take .cpu() of it"
