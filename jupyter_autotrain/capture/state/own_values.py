"""What modules beside the notebook hold now that their files alone do not give: counters, registries, configurations.

A value is compared with the literal that the file sets it to. What the file computes, or touches in other statements
while it is imported, cannot be known; it counts as changed when it holds a definition of the notebook, or is an object
whose attributes a function of the file sets.
"""

from __future__ import annotations

import ast
import sys
from abc import ABCMeta
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from jupyter_autotrain.capture.installed import file_of
from jupyter_autotrain.capture.state import own_modules, own_states
from jupyter_autotrain.capture.state.literals import is_literal_value
from jupyter_autotrain.capture.state.paths import top
from jupyter_autotrain.capture.state.statements import CHANGES_A_PART, assignments, root_name
from jupyter_autotrain.capture.state.uses import UsedLibraries
from jupyter_autotrain.capture.syntax.history import is_literal
from jupyter_autotrain.capture.syntax.scopes import Function, arguments_of, bound_by, declared_global

_EMPTY = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "Counter"})


@dataclass(frozen=True, slots=True)
class HeldValue:
    """A value that a module beside the notebook, or a class at its top, holds.

    Attributes:
        module: The module.
        path: Its full name.
        value: What it is now; of an object that is filled again, its parts.
        form: How `{p}` gets the value `{v}`. What the import makes is filled: others may refer to it.
    """

    module: str
    path: str
    value: object
    form: str = "{p} = {v}"


def find(uses: UsedLibraries, home: str) -> Iterator[HeldValue]:
    """Every value that has changed.

    Args:
        uses: What the trial uses.
        home: The module that the notebook's definitions are in.
    """
    for module in (name for name in uses.own if top(name) in uses.direct):
        if (read := own_modules.read(module)) is not None:
            yield from _Namespace(module, module, read[0].body, vars(sys.modules[module]), home).changed()


@dataclass(frozen=True, slots=True)
class _Namespace:
    """A module, or a class at its top, and the statements that make it."""

    module: str
    path: str
    body: Sequence[ast.stmt]
    now: Mapping[str, object]
    home: str

    def changed(self) -> Iterator[HeldValue]:
        """What has changed in it."""
        pairs = [pair for node in self.body for pair in assignments(node)]
        written = {target.id: value for target, value in pairs if isinstance(target, ast.Name)}
        functions = {node.name: node for node in self.body if isinstance(node, Function)}
        at_import = _AtImport(self.body)
        added = at_import.set_by_functions - bound_by(list(self.body))
        for name, value in list(self.now.items()):
            here = f"{self.path}.{name}"
            if name in written or name in functions:
                inner = own_states.of_function(value, functions.get(name))
                yield from (HeldValue(self.module, f"{here}.{part}", kept) for part, kept in inner)
            if isinstance(value, ModuleType) or hasattr(value, "__get__"):
                continue
            is_filled = name in at_import.set_by_functions
            is_made = name in written and not isinstance(written[name], ast.Constant)
            if is_made and (state := own_states.of_object(value, is_filled=is_filled)):
                yield HeldValue(self.module, here, *state)
            elif name in added or (name in written and self._differs(name, value, written[name], at_import)):
                yield self._held(here, value, written.get(name))
        for node in self.body:
            cls = self.now.get(node.name) if isinstance(node, ast.ClassDef) and not node.decorator_list else None
            if isinstance(node, ast.ClassDef) and type(cls) in {type, ABCMeta}:
                yield from _Namespace(
                    self.module, f"{self.path}.{node.name}", node.body, vars(cls), self.home
                ).changed()

    def _differs(self, name: str, value: object, written: ast.expr | None, at_import: _AtImport) -> bool:
        if _holds(value, self.home):
            return True
        if at_import.touches(name, written):
            return False
        if written is not None and is_literal(written):
            return not is_literal_value(value) or _is_other(value, ast.literal_eval(written))
        if _makes_empty(written):
            return isinstance(value, dict | list | set) and bool(value)
        return _is_own(value) and (name in at_import.set_by_functions or own_states.is_changed_by_use(value))

    def _held(self, path: str, value: object, written: ast.expr | None) -> HeldValue:
        is_made = written is not None and not isinstance(written, ast.Constant)
        if is_made and isinstance(value, list):
            return HeldValue(self.module, path, [*value], "{p}.clear()\n{p}.extend({v})")
        if is_made and isinstance(value, dict | set):
            parts = dict(value) if isinstance(value, dict) else set(value)
            return HeldValue(self.module, path, parts, "{p}.clear()\n{p}.update({v})")
        if is_made and _is_own(value):
            form = "{p}.__dict__.clear()\n{p}.__dict__.update({v})"
            return HeldValue(self.module, path, dict(vars(value)), form)
        return HeldValue(self.module, path, value)


class _AtImport:
    """What the statements of a file, or of a class, do to its names while they run.

    Args:
        body: The statements.
    """

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        functions = {node.name: _set_by(node) for node in body if isinstance(node, Function | ast.ClassDef)}
        self.set_by_functions = frozenset[str]().union(*functions.values())
        names = [node for node in _run_at_import(body) if isinstance(node, ast.Name)]
        self._stored = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
        self._used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        self._set_by_calls = frozenset[str]().union(*(functions.get(name, ()) for name in self._used))

    def touches(self, name: str, written: ast.expr | None) -> bool:
        """Whether a name may have changed since its own statement, which wrote this."""
        can_change = not isinstance(written, ast.Constant)
        return self._stored[name] > 1 or name in self._set_by_calls or (can_change and name in self._used)


def _run_at_import(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every part of these statements but the bodies of functions."""
    todo = list(body)
    while todo:
        node = todo.pop()
        yield node
        todo += (
            [*node.decorator_list, *node.args.defaults] if isinstance(node, Function) else ast.iter_child_nodes(node)
        )


def _set_by(node: ast.AST) -> set[str]:
    """The names outside that a function, or the methods of a class, bind or set parts of."""
    functions = [part for part in ast.walk(node) if isinstance(part, Function)]
    return set[str]().union(*(_set_outside(function) for function in functions))


def _set_outside(function: Function) -> set[str]:
    found = declared_global(function.body)
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            found.add(root_name(node) or "")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES_A_PART:
            found.add(root_name(node.func) or "")
    return found - arguments_of(function) - bound_by(function.body)


def _is_own(value: object) -> bool:
    """Whether it is an object with attributes of a class that is written beside the notebook."""
    return hasattr(value, "__dict__") and file_of(type(value).__module__) is not None


def _holds(value: object, home: str) -> bool:
    """Whether a container holds a definition, or an object, of the notebook."""
    if not isinstance(value, dict | list | set):
        return False
    parts = [*value, *(value.values() if isinstance(value, dict) else ())]
    return any(home in {getattr(part, "__module__", ""), type(part).__module__} for part in parts)


def _makes_empty(written: ast.expr | None) -> bool:
    """Whether an expression is a call such as `dict()` or `defaultdict(list)`."""
    if not isinstance(written, ast.Call) or written.keywords or not all(isinstance(a, ast.Name) for a in written.args):
        return False
    return getattr(written.func, "attr", getattr(written.func, "id", "")) in _EMPTY


def _is_other(now: object, written: object) -> bool:
    return type(now) is not type(written) or now != written
