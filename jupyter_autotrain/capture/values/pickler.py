"""The pickler: definitions by reference into the script, arrays upon shared memory, all else as cloudpickle does it."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from pickle import PickleBuffer

import cloudpickle

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.syntax.codes import code_names, has_globals
from jupyter_autotrain.capture.values import instances, unpicklable
from jupyter_autotrain.capture.values.array_layout import ArrayLayout, LaterError, ReducedValue
from jupyter_autotrain.capture.values.arrays import reduce_array
from jupyter_autotrain.capture.values.by_value import (
    CACHED,
    TRAVELS,
    class_reduced,
    function_reduced,
    has_cached,
)
from jupyter_autotrain.capture.values.embedded import EMBEDDED
from jupyter_autotrain.capture.values.memory import ArrayMemory
from jupyter_autotrain.capture.values.stream import PickleStream
from jupyter_autotrain.capture.values.tables import reduce_table_part, set_on_table
from jupyter_autotrain.capture.values.tensors import reduce_torch
from jupyter_autotrain.capture.values.unpicklable import UnpicklableError

_PROTOCOL = 5
_NEVER_SHARED = (
    int, float, complex, str, bytes, range, tuple, frozenset, type(None), type(Ellipsis), type(NotImplemented),
    types.ModuleType, types.BuiltinFunctionType, types.CodeType, Enum, PickleBuffer, *EMBEDDED,
)  # fmt: skip

_ONCE_A_PROCESS = (("random", "_inst"), ("numpy.random.mtrand", "_rand"), ("torch", "default_generator"))
"""The global random generators: (module, name)."""
_DEFINITIONS = (type, types.FunctionType)
Reducer = Callable[[object, ArrayLayout], ReducedValue]


@dataclass(frozen=True, slots=True)
class PickleContext:
    """What pickles refer to.

    Attributes:
        namespace: The notebook's globals.
        in_script: Gives the name under which the script defines this very function or class, or None.
        memory: The memory of all arrays of the capture.
    """

    namespace: Mapping[str, object]
    in_script: Callable[[object], str | None]
    memory: ArrayMemory = field(default_factory=ArrayMemory)


class _Module:
    """Pickles as a module of the process that reads it.

    Args:
        name: Its name.
    """

    def __init__(self, name: str = "__main__") -> None:
        self._name = name

    def __reduce__(self) -> tuple[object, ...]:
        return importlib.import_module, (self._name,)


class _MainGlobals:
    """Pickles as the globals of `__main__`, so that functions see the script's names and not copies."""

    def __reduce__(self) -> tuple[object, ...]:
        return vars, (_Module(),)


class ValuePickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """Pickles one value, and notes what it refers to.

    Args:
        stream: Where to write.
        context: What the pickle refers to.
        layout: Finds the memory of its arrays.
    """

    def __init__(self, stream: PickleStream, context: PickleContext, layout: ArrayLayout) -> None:
        super().__init__(stream, protocol=_PROTOCOL)
        self.layout = layout
        self._namespace = context.namespace
        self._in_script = context.in_script
        self._home = str(self._namespace.get("__name__"))
        self.refers = set[str]()
        self.uses = set[str]()
        self.modules = set[str]()
        self.emptied = set[str]()
        self.left_out = set[str]()
        self.codes = set[types.CodeType]()
        module = sys.modules.get(self._home)
        main = _MainGlobals()
        self.globals_ref[id(self._namespace)] = self.globals_ref[id(getattr(module, "__dict__", None))] = main
        loaded = [(sys.modules[owner], name) for owner, name in _ONCE_A_PROCESS if owner in sys.modules]
        self._once = {id(getattr(owner, name, None)): (owner.__name__, name) for owner, name in loaded}
        self._ordinary = set[type]()
        self._reducers: dict[type, Reducer] = {}

    def kept(self) -> Iterator[object]:
        """Every object that has an identity of its own in the pickle."""
        return (value for _, value in self.memo.copy().values())

    def shareable(self) -> list[int]:
        """The identities of those that can be shared with another name so that it makes a difference."""
        can_change: dict[type, bool] = {}
        found = list(self.layout.roots)
        for key, (_, value) in self.memo.copy().items():
            kind = type(value)
            if kind not in can_change:
                can_change[kind] = not (issubclass(kind, _NEVER_SHARED) or kind.__name__.endswith("DType"))
            if can_change[kind] and not (issubclass(kind, _DEFINITIONS) and self._is_global(value)):
                found.append(key)
        return found

    def _is_global(self, value: object) -> bool:
        return looking.attribute(value, "__module__") != self._home or self._in_script(value) is not None

    def reducer_override(self, value: object) -> object:
        """Refer to what the script defines, refuse what cannot travel; give functions the script's globals."""
        kind = type(value)
        if (place := self._once.get(id(value))) is not None:
            return attrgetter(place[1]), (_Module(place[0]),)
        if kind in self._ordinary:
            return NotImplemented
        is_definition = issubclass(kind, _DEFINITIONS)
        if is_definition or callable(value):
            name = self._in_script(value)
            if name is not None:
                self.refers.add(name.partition(".")[0])
                return attrgetter(name), (_Module(),)
            self.modules.add(str(looking.attribute(value, "__module__", "")))
        if is_definition:
            return self._definition(value)
        return self._instance(value, kind)

    def _instance(self, value: object, kind: type) -> object:
        reducer = self._reducers.get(kind)
        # Of tensors each can have a reason of its own; for other values their class tells.
        if reducer in {None, reduce_torch} and (why := unpicklable.reason(value)):
            raise UnpicklableError(f"it holds {why}")
        if kind is CACHED and (special := function_reduced(value, self._home)) is not None:
            self.emptied.update(
                {str(looking.attribute(value, "__qualname__", kind.__name__))} if has_cached(value) else ()
            )
            return special
        if reducer is None:
            reducer = self._reducers[kind] = _reducer(kind, self._home)
        if reducer is _by_pickle and not callable(value):
            self._ordinary.add(kind)
        try:
            reduced = reducer(value, self.layout)
        except LaterError:
            return bytearray, ()
        names = set_on_table(value) if reducer is reduce_table_part else []
        if reduced is not None:
            names += instances.left_out(value, reduced, self._home)
        if names:
            self.left_out.add(f"{', '.join(names)} of {kind.__name__}, which its class does not pickle as it is")
        return NotImplemented if reduced is None else reduced

    def _definition(self, value: object) -> object:
        if any(value is own for own in TRAVELS):
            return self._dynamic_function_reduce(value)
        if (special := function_reduced(value, self._home)) is not None:
            return special
        reduced = super().reducer_override(value)
        if isinstance(value, type) and isinstance(reduced, tuple) and len(reduced) > 3:
            return class_reduced(value, reduced, self._home)
        if isinstance(value, types.FunctionType) and has_globals(value, self._namespace):
            return self._with_script_globals(value, reduced)
        return reduced

    def _with_script_globals(self, function: types.FunctionType, reduced: object) -> object:
        if not isinstance(reduced, tuple) or len(reduced) < 3:
            return reduced
        make, arguments, (state, slots), *rest = reduced
        self.codes.add(function.__code__)
        self.uses.update(code_names(function.__code__) & set(self._namespace))
        # The very cells go along, so that functions of one factory still share their variables.
        arguments = (*arguments[:-1], function.__closure__)
        return make, arguments, (state, {**slots, "__globals__": {}, "__closure__": None}), *rest


def _reducer(kind: type, home: str) -> Reducer:
    """How values of a class are pickled."""
    numpy = sys.modules.get("numpy")
    torch = sys.modules.get("torch")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return reduce_array
    if torch is not None and issubclass(kind, _torch_kinds(torch)):
        return reduce_torch
    if looking.module_of(kind).partition(".")[0] == "pandas":
        return reduce_table_part
    alone = instances.reducer_of(kind, home)
    return _by_pickle if alone is None else lambda value, _: alone(value, home)


def _by_pickle(_value: object, _places: ArrayLayout) -> ReducedValue:
    return None


def _torch_kinds(torch: types.ModuleType) -> tuple[type, ...]:
    return torch.Tensor, torch.UntypedStorage, torch.TypedStorage, torch.nn.Module, torch.optim.Optimizer
