"""What cannot travel to another process: why, and where in a value it is."""

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
from collections import deque
from collections.abc import Iterator
from itertools import islice

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.values import autograd

_SEEN_AT_MOST = 20_000
_DEPTH = 6
_OF_A_MODULE = {"_parameters", "_buffers", "_modules"}
_IN_MEMORY = (io.BytesIO, io.StringIO)
_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((io.IOBase, tempfile._TemporaryFileWrapper), "an open file"),  # noqa: SLF001 - it has no public name
    ((types.GeneratorType, types.AsyncGeneratorType), "a generator: it can be neither copied nor started again"),
    ((types.CoroutineType, asyncio.Future), "a running asynchronous task"),
    ((type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Semaphore, threading.Event,
      threading.Barrier), "a lock"),
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
    """Why this very object cannot travel; "" when it can, as far as one can see from outside."""
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
    """Everything inside a value that cannot travel: (how to reach it, such as `cfg['log']`, why not)."""
    queue: deque[tuple[str, object, int]] = deque([(name, value, 0)])
    seen: set[int] = set()
    while queue and len(seen) < _SEEN_AT_MOST:
        path, item, depth = queue.popleft()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if why := reason(item):
            yield path, why
        elif depth < _DEPTH:
            queue.extend((path + step, inner, depth + 1) for step, inner in parts(item))


def parts(value: object) -> Iterator[tuple[str, object]]:
    """What a container or an instance holds: (the step to it, the object). Numbers and text hold nothing."""
    for key, item in islice(looking.items(value), _SEEN_AT_MOST):
        yield f"[{key!r}]" if isinstance(key, str | int | float) else f"[a {type(key).__name__}]", item
    for index, item in enumerate(islice(looking.elements(value), _SEEN_AT_MOST)):
        if not looking.is_kind(item, (int, float, str, bytes, complex)):
            yield f"[{index}]", item
    if not looking.is_kind(value, (type, types.ModuleType, types.FunctionType)) and not _pickles_itself(value):
        for attribute, item in list(looking.own_attributes(value).items()):
            yield from _attribute(attribute, item)


def _attribute(name: str, item: object) -> Iterator[tuple[str, object]]:
    """An attribute; those that a torch module keeps in dictionaries by the names that people write."""
    if name in _OF_A_MODULE and isinstance(item, dict):
        yield from ((f".{key}", inner) for key, inner in item.items())
    else:
        yield f".{name}", item


def _pickles_itself(value: object) -> bool:
    """True for objects that leave out on purpose what cannot travel, such as a logger or a queue with its lock."""
    methods = [getattr(type(value), name, None) for name in ("__getstate__", "__reduce__")]
    # Compared by identity: a compiled method may have no hash.
    own = [method for method in methods if method is not object.__getstate__ and method is not object.__reduce__]
    return any(getattr(method, "__module__", "") != "torch.nn.modules.module" for method in own)


def _elsewhere(value: object) -> str:
    """Why a tensor cannot travel: it lives elsewhere, or has a graph."""
    torch = sys.modules.get("torch")
    if torch is None or not looking.is_kind(value, torch.Tensor):
        return ""
    assert isinstance(value, torch.Tensor)
    if value.device.type == "cpu":
        return autograd.reason(value)
    if value.device.type == "meta":
        return "a tensor without data (device meta)"
    return f"a tensor on {value.device}: take .cpu() of it"
