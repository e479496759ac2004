"""Plain data, pickled: definitions by reference into the script, objects shared by several names kept shared."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import cloudpickle

from jupyter_autotrain.capture import refuse
from jupyter_autotrain.capture.definitions import code_names
from jupyter_autotrain.capture.stream import LimitError, Stream

_PROTOCOL = 5
_NEVER_SHARED = (
    int, float, complex, str, bytes, range, type(None), type(Ellipsis), type(NotImplemented), types.ModuleType,
    types.BuiltinFunctionType, types.CodeType, Enum,
)  # fmt: skip


class UnpicklableError(Exception):
    """A value cannot be pickled; the text says why."""


@dataclass(frozen=True, slots=True)
class Pickled:
    """One pickle.

    Attributes:
        content: The bytes.
        refers: Names of the script's own functions and classes that must exist before it is read.
        uses: Globals that functions inside it read when they are called.
        modules: Modules that classes and functions inside it are imported from.
        parts: The mutable objects inside by identity, to see what is shared with other names; held, so that no
            passing object takes the identity of another.
    """

    content: bytes
    refers: frozenset[str]
    uses: frozenset[str]
    modules: frozenset[str]
    parts: Mapping[int, object]


def dump(
    value: object, namespace: Mapping[str, object], in_script: Callable[[object], str | None], stream: Stream
) -> Pickled:
    """Pickle a value.

    Args:
        value: What to pickle.
        namespace: The notebook's globals.
        in_script: Gives the name under which the script defines this very function or class, or None.
        stream: Where to write it; it counts the bytes.

    Raises:
        UnpicklableError: Something in it cannot be pickled.
        LimitError: It has more bytes than may travel.
    """
    pickler = _Pickler(stream, namespace, in_script)
    try:
        pickler.dump(value)
    except LimitError:
        raise
    except RecursionError:
        raise UnpicklableError("it is nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - any class may raise anything while it is pickled
        raise UnpicklableError(str(error).partition("\n")[0] or type(error).__name__) from None
    return Pickled(
        stream.content(),
        refers=frozenset(pickler.refers),
        uses=frozenset(pickler.uses),
        modules=frozenset(pickler.modules),
        parts=pickler.parts,
    )


def sharing(parts: Mapping[str, Mapping[int, object]]) -> list[tuple[str, ...]]:
    """Group names whose values share objects, such as a model and its optimizer; they must be pickled together."""
    group: dict[str, str] = {name: name for name in parts}
    owner: dict[int, str] = {}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for name in parts:
        for part in parts[name]:
            group[root(name)] = root(owner.setdefault(part, name))
    together: dict[str, list[str]] = {}
    for name in parts:
        together.setdefault(root(name), []).append(name)
    return [tuple(names) for names in together.values()]


def file_name(names: Sequence[str]) -> str:
    """The name of the pickle that holds these names' values."""
    return names[0] if len(names) == 1 else f"{names[0]}_and_{len(names) - 1}"


class _Main:
    """Pickles as the module `__main__` of whoever reads it."""

    def __reduce__(self) -> tuple[object, ...]:
        return importlib.import_module, ("__main__",)


class _MainGlobals:
    """Pickles as the globals of `__main__`, so that functions see the script's names and not copies."""

    def __reduce__(self) -> tuple[object, ...]:
        return vars, (_Main(),)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    def __init__(
        self, stream: Stream, namespace: Mapping[str, object], in_script: Callable[[object], str | None]
    ) -> None:
        super().__init__(stream, protocol=_PROTOCOL)
        self.stream, self.namespace, self.in_script = stream, namespace, in_script
        self.home = namespace.get("__name__")
        self.refers, self.uses, self.modules = set[str](), set[str](), set[str]()
        self.parts: dict[int, object] = {}
        self.globals_ref[id(namespace)] = _MainGlobals()

    def persistent_id(self, value: object) -> None:
        """Note every object that could be shared; nothing is persistent."""
        if not isinstance(value, _NEVER_SHARED) and not self._is_global(value):
            self.parts[id(value)] = value

    def _is_global(self, value: object) -> bool:
        if isinstance(value, tuple | frozenset) or type(value).__name__.endswith("DType"):
            return True  # immutable: whether it is shared makes no difference
        return isinstance(value, type | types.FunctionType) and (
            value.__module__ != self.home or self.in_script(value) is not None
        )

    def reducer_override(self, value: object) -> object:
        """Refer to what the script defines; give other functions the script's globals."""
        if isinstance(value, type | types.FunctionType) or callable(value):
            name = self.in_script(value)
            if name is not None:
                self.refers.add(name)
                return getattr, (_Main(), name)
            self.modules.add(str(getattr(value, "__module__", "")))
        elif why := refuse.reason(value):  # deeper than one can see from outside, such as a model's tensors
            raise UnpicklableError(f"it holds {why}")
        if isinstance(size_bytes := getattr(value, "nbytes", None), int) and getattr(value, "base", None) is None:
            self.stream.expect(size_bytes)
        if isinstance(value, types.CellType):
            return _cell(value)
        reduced = super().reducer_override(value)
        if isinstance(value, types.FunctionType) and value.__globals__ is self.namespace:
            return self._with_script_globals(value, reduced)
        return reduced

    def _with_script_globals(self, function: types.FunctionType, reduced: object) -> object:
        if not isinstance(reduced, tuple) or len(reduced) < 3:
            return reduced
        make, arguments, (state, slots), *rest = reduced
        self.uses.update(code_names(function.__code__) & set(self.namespace))
        # The very cells go along, so that functions of one factory still share their variables.
        arguments = (*arguments[:-1], function.__closure__)
        return make, arguments, (state, {**slots, "__globals__": {}, "__closure__": None}), *rest


def _cell(cell: types.CellType) -> tuple[object, ...]:
    """An empty cell, filled once it exists: a function may well be in its own cell."""
    try:
        state = (None, {"cell_contents": cell.cell_contents})
    except ValueError:  # still empty
        return types.CellType, ()
    return types.CellType, (), state


def embed(names: Iterable[str], namespace: Mapping[str, object]) -> object:
    """What to pickle for a group of names: the value of one, or a tuple of all."""
    values = tuple(namespace[name] for name in names)
    return values[0] if len(values) == 1 else values
