"""What the names of a program may stand for: all that it binds them to, what callers give, what the notebook holds."""

from __future__ import annotations

import ast
import itertools
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.files.live_values import objects
from jupyter_autotrain.capture.files.path_methods import ANY
from jupyter_autotrain.capture.files.program import Program, ProgramScope
from jupyter_autotrain.capture.script import OWN_PLACE

PossibleValues = list[object]
UNKNOWN: PossibleValues = [ANY]
_SEPARATORS = {"os.sep": "/", "os.path.sep": "/", "os.curdir": ".", "os.pardir": ".."}


class Bindings(ABC):
    """Gives the values of names, and of attributes that the code sets.

    Args:
        program: The code.
        values: The captured values by name.
        parameters: Names that the search chooses.
    """

    def __init__(self, program: Program, values: Mapping[str, object], parameters: Collection[str]) -> None:
        self._program = program
        self._values = values
        self._parameters = parameters
        self._names: dict[tuple[ProgramScope, str], PossibleValues] = {}
        self._attributes: dict[str, PossibleValues] = {}
        self._objects = [one for one in objects(values.values()) if looking.own_attributes(one)]

    @abstractmethod
    def of(self, node: ast.expr, scope: ProgramScope) -> PossibleValues:
        """The values that an expression may have."""

    def name(self, name: str, scope: ProgramScope) -> PossibleValues:
        """The values of a name, read in a scope."""
        if name in {"__file__", OWN_PLACE}:
            return [scope.source.relative_path or "main.py"]
        inner: ProgramScope | None = scope
        while inner is not None and name not in inner.bound:
            inner = inner.parent
        if inner is None:
            return self._global(name, scope)
        key = inner, name
        if key not in self._names:
            self._names[key] = []  # what is made from itself is made from what is known of it so far
            self._names[key] = merged(self._from_outside(name, inner))
            for value, where in inner.bound[name]:
                self._names[key] = merged([self._names[key], self.of(value, where)])
        return self._names[key]

    def attribute(self, name: str) -> PossibleValues:
        """What the code sets as an attribute of anything."""
        if name not in self._attributes:
            self._attributes[name] = []
            bound = self._program.attributes.get(name, ())
            self._attributes[name] = merged(self.of(value, where) for value, where in bound)
        return self._attributes[name]

    def imported(self, dotted: str) -> PossibleValues:
        """A name of a module that travels along."""
        module, _, name = dotted.rpartition(".")
        if module in self._program.modules and name in self._program.modules[module].bound:
            return self.name(name, self._program.modules[module])
        return [_SEPARATORS[dotted]] if dotted in _SEPARATORS else []

    def _from_outside(self, name: str, scope: ProgramScope) -> list[PossibleValues]:
        """What a parameter gets from callers, and a name of the script from the notebook and the search."""
        if scope.function is not None:
            return self._given(name, scope)
        if scope.source.relative_path:
            return []
        live = [[self._values[name]]] if name in self._values else []
        return [*live, UNKNOWN] if name in self._parameters else live

    def _global(self, name: str, scope: ProgramScope) -> PossibleValues:
        dotted = self._program.dotted(ast.Name(name, ast.Load()), scope.source)
        if dotted:
            return self.imported(dotted)
        if name in self._parameters:
            return UNKNOWN
        if name in self._values:
            return [self._values[name]]
        is_known = name in self._program.functions or name in self._program.classes
        return [] if is_known or name == "checkpoint" else UNKNOWN

    def _given(self, name: str, scope: ProgramScope) -> list[PossibleValues]:
        """What callers give for a parameter; nothing is known of a function that is not called by name."""
        assert scope.function is not None
        arguments = scope.function.args
        positional = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        is_local = name not in {*positional, *(one.arg for one in arguments.kwonlyargs)}
        if is_local or not scope.name:
            return [] if is_local else [UNKNOWN]
        position = positional.index(name) - scope.is_method if name in positional else None
        if position is not None and position < 0:
            return [self._owners(scope)]
        sites = self._program.sites.get(scope.name, ())
        found = [self.of(value, where) for call, where in sites for value in _argument(call, name, position)]
        return found or ([] if scope.bound[name] else [UNKNOWN])

    def _owners(self, method: ProgramScope) -> PossibleValues:
        """The captured objects that `self` may be."""
        own = method.owner.name if method.owner else ""
        return [one for one in self._objects if own in _class_names(one)]


def _class_names(value: object) -> set[str]:
    return {kind.__name__ for kind in type(value).__mro__}


def merged(many: Iterable[PossibleValues]) -> PossibleValues:
    """All values of several lists; texts once."""
    found: PossibleValues = []
    seen: set[object] = set()
    for one in itertools.chain.from_iterable(many):
        key = one if isinstance(one, str | int | float) else id(one)
        if key not in seen:
            seen.add(key)
            found.append(one)
    return found


def _argument(call: ast.Call, name: str, position: int | None) -> list[ast.expr]:
    """What a call gives for a parameter; nothing when it leaves it to the default."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return [keyword.value]
        if keyword.arg is None:
            return [ast.copy_location(ast.Subscript(keyword.value, ast.Constant(name), ast.Load()), call)]
    before = call.args[:position] if position is not None else []
    if position is None or position >= len(call.args) or any(isinstance(one, ast.Starred) for one in before):
        return []
    return [call.args[position]]
