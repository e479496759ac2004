"""The pickler: definitions by reference into the script, arrays and tensors whole, all else as cloudpickle does it."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import EnumType
from operator import attrgetter

import cloudpickle

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.definitions.unchanged import set_on_members
from jupyter_autotrain.capture.syntax.codes import code_names, has_globals
from jupyter_autotrain.capture.values import instances, unpicklable
from jupyter_autotrain.capture.values.arrays import (
    ReducedValue,
    mapped_file,
    reduce_array,
    reduce_table_part,
    set_on_table,
)
from jupyter_autotrain.capture.values.by_value import CACHED, TRAVELS, class_reduced, function_reduced, has_cached
from jupyter_autotrain.capture.values.standins import Call
from jupyter_autotrain.capture.values.stream import PickleStream
from jupyter_autotrain.capture.values.tensors import is_plain, reduce_torch
from jupyter_autotrain.capture.values.unpicklable import UnpicklableError

_PROTOCOL = 5
_ONCE_A_PROCESS = (("random", "_inst"), ("numpy.random.mtrand", "_rand"), ("torch", "default_generator"))
"""The global random generators: (module, name)."""
_DEFINITIONS = (type, types.FunctionType)
Reducer = Callable[[object], ReducedValue]


@dataclass(slots=True)
class Pickled:
    """The part of the pickle that one name has, noted while it is written.

    Attributes:
        chunks: Its bytes.
        refers: Names of the script's own functions and classes that must exist before it is read.
        uses: Globals that functions inside it read when they are called.
        modules: Modules that classes and functions inside it are imported from.
        arrays: Its arrays and tensors.
        copies: In which way something in it is only a copy of what is here.
        emptied: Functions whose cached results stay here.
        left_out: Attributes of instances that stay here.
        codes: The code of functions inside it.
    """

    chunks: tuple[bytes, ...] = ()
    refers: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    arrays: list[object] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)
    emptied: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    codes: set[types.CodeType] = field(default_factory=set)

    @property
    def content(self) -> bytes:
        """All its bytes."""
        return b"".join(self.chunks)


_MAIN = Call(importlib.import_module, "__main__")
_MAIN_GLOBALS = Call(vars, _MAIN)
"""The globals of `__main__`, so that functions see the script's names and not copies."""


class ValuePickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """A pickler of values, which notes the objects they refer to.

    Args:
        stream: Where to write.
        namespace: The notebook's globals.
        in_script: Gives the name under which the script defines this very function or class, or None.
    """

    def __init__(
        self, stream: PickleStream, namespace: Mapping[str, object], in_script: Callable[[object], str | None]
    ) -> None:
        super().__init__(stream, protocol=_PROTOCOL)
        self._notes = Pickled()
        self._namespace = namespace
        self._in_script = in_script
        self._home = str(self._namespace.get("__name__"))
        module = sys.modules.get(self._home)
        self.globals_ref[id(self._namespace)] = self.globals_ref[id(getattr(module, "__dict__", None))] = _MAIN_GLOBALS
        loaded = [(sys.modules[owner], name) for owner, name in _ONCE_A_PROCESS if owner in sys.modules]
        self._once = {id(getattr(owner, name, None)): (owner.__name__, name) for owner, name in loaded}
        self._ordinary = set[type]()
        self._reducers: dict[type, Reducer] = {}

    def kept(self) -> Iterator[object]:
        """Yield every object that has an identity of its own in the pickle."""
        return (value for _, value in self.memo.copy().values())

    def take_notes(self) -> Pickled:
        """Return the notes on what was pickled since the last call."""
        notes = self._notes
        self._notes = Pickled()
        return notes

    def reducer_override(self, value: object) -> object:
        """Refer to definitions of the script, refuse values that cannot travel; give functions the script's globals."""
        kind = type(value)
        if (place := self._once.get(id(value))) is not None:
            return attrgetter(place[1]), (Call(importlib.import_module, place[0]),)
        if kind in self._ordinary:
            return NotImplemented
        is_definition = issubclass(kind, _DEFINITIONS)
        if is_definition or callable(value):
            name = self._in_script(value)
            if name is not None:
                self._notes.refers.add(name.partition(".")[0])
                return attrgetter(name), (_MAIN,)
            self._notes.modules.add(str(looking.attribute(value, "__module__", "")))
        if is_definition:
            return self._definition(value)
        return self._instance(value, kind)

    def _instance(self, value: object, kind: type) -> object:
        reducer = self._reducers.get(kind)
        # Of tensors each can have a reason of its own; for other values their class tells.
        if reducer in {None, reduce_torch} and (why := unpicklable.reason(value)):
            raise UnpicklableError(f"it holds {why}")
        if kind is CACHED and (special := function_reduced(value, self._home)) is not None:
            self._notes.emptied.update(
                {str(looking.attribute(value, "__qualname__", kind.__name__))} if has_cached(value) else ()
            )
            return special
        if reducer is None:
            reducer = self._reducers[kind] = _reducer(kind, self._home)
        if reducer is _by_pickle and not callable(value):
            self._ordinary.add(kind)
        self._note_memory(value, reducer)
        reduced = reducer(value)
        self._note_left_out(value, reduced, set_on_table(value) if reducer is reduce_table_part else [])
        return NotImplemented if reduced is None else reduced

    def _note_left_out(self, value: object, reduced: ReducedValue, names: list[str]) -> None:
        if reduced is not None:
            names += instances.left_out(value, reduced, self._home)
        if names:
            kind = type(value).__name__
            self._notes.left_out.add(f"{', '.join(names)} of {kind}, which its class does not pickle as it is")

    def _note_memory(self, value: object, reducer: Reducer) -> None:
        """Note the memory of an array: other values in that memory are copies of their own in a trial."""
        if reducer is reduce_array:
            self._notes.arrays.append(value)
            self._notes.copies += mapped_file(value)
        elif reducer is reduce_torch and is_plain(value, sys.modules["torch"]):
            self._notes.arrays.append(value)
            if looking.attribute(value, "is_inference", bool)():  # type: ignore[operator]  # a method
                self._notes.copies.append(
                    "holds what torch computed in inference mode; in a trial it is as any other tensor"
                )
        elif isinstance(value, BaseException) and value.__traceback__ is not None:
            self._notes.left_out.add(f"__traceback__ of {type(value).__name__}, which no process can hand to another,")

    def _definition(self, value: object) -> object:
        if any(value is own for own in TRAVELS):
            return self._dynamic_function_reduce(value)
        if (special := function_reduced(value, self._home)) is not None:
            return special
        if isinstance(value, EnumType):
            self._notes.left_out.update(f"{path}, which was set later," for path in set_on_members(value))
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
        self._notes.codes.add(function.__code__)
        self._notes.uses.update(code_names(function.__code__) & set(self._namespace))
        # The very cells go along, so that functions of one factory still share their variables.
        arguments = (*arguments[:-1], function.__closure__)
        return make, arguments, (state, {**slots, "__globals__": {}, "__closure__": None}), *rest


def _reducer(kind: type, home: str) -> Reducer:
    """Return the way in which values of a class are pickled."""
    numpy = sys.modules.get("numpy")
    torch = sys.modules.get("torch")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return reduce_array
    if torch is not None and issubclass(kind, _torch_kinds(torch)):
        return reduce_torch
    if looking.module_of(kind).partition(".")[0] == "pandas":
        return reduce_table_part
    alone = instances.reducer_of(kind, home)
    return _by_pickle if alone is None else lambda value: alone(value, home)


def _by_pickle(_value: object) -> ReducedValue:
    return None


def _torch_kinds(torch: types.ModuleType) -> tuple[type, ...]:
    return torch.Tensor, torch.UntypedStorage, torch.TypedStorage, torch.nn.Module, torch.optim.Optimizer
