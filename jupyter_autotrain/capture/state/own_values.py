"""Changes of cells in modules beside the notebook: counters, registries, objects; told with those cells.

A value is compared with the literal that its file sets it to. What a file computes cannot be compared: it counts as
changed where a function of the file fills it, where its use changes it, or where it holds something of the notebook.
"""

from __future__ import annotations

import ast
import dis
import sys
from abc import ABCMeta
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType, ModuleType

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.installed import file_of
from jupyter_autotrain.capture.state import libraries
from jupyter_autotrain.capture.state.effects import CHANGES_A_PART
from jupyter_autotrain.capture.state.libraries import UsedLibraries
from jupyter_autotrain.capture.state.paths import top
from jupyter_autotrain.capture.syntax.history import is_literal
from jupyter_autotrain.capture.syntax.nodes import assignments, called, is_set, root_name
from jupyter_autotrain.capture.syntax.scopes import Function, bound_by, declared_global, own_names

_EMPTY = frozenset({"Counter", "OrderedDict", "defaultdict", "deque", "dict", "list", "set"})
_CHANGED_BY_USE = frozenset({
    "collections.deque", "itertools.count", "numpy.random._generator.Generator", "numpy.random.mtrand.RandomState",
    "random.Random", "torch._C.Generator",
})  # fmt: skip
_MAKE = frozenset({"__init__", "__post_init__", "__new__", "__setattr__", "__delattr__", "__setstate__"})
_STORES = frozenset({"STORE_ATTR", "STORE_SUBSCR"})


def changed(uses: UsedLibraries, namespace: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the full name of what has changed in each module, and the module; "" where running cells again is no help.

    Args:
        uses: What the trial uses.
        namespace: The notebook's globals.
    """
    home = str(namespace.get("__name__"))
    named = set(map(id, namespace.values()))
    for module in (name for name in uses.own if top(name) in uses.direct):
        if (read := libraries.read(module)) is not None:
            for path, value in _in_namespace(module, read[0].body, vars(sys.modules[module]), home):
                is_shared = any(type(part).__hash__ is None and id(part) in named for part in _parts(value))
                yield path, "" if is_shared else module


def _in_namespace(
    path: str, body: Sequence[ast.stmt], now: Mapping[str, object], home: str
) -> Iterator[tuple[str, object]]:
    """Yield what has changed in a module, or in a class at its top, made by these statements, with its value now."""
    at_import = _AtImport(body)
    for name, value in list(now.items()):
        if isinstance(value, FunctionType):
            is_changed = _is_changed_function(value, at_import.functions.get(name))
        else:
            is_changed = not hasattr(value, "__get__") and at_import.may_differ(name, value, home)
        if is_changed:
            yield f"{path}.{name}", value
    for node in body:
        cls = now.get(node.name) if isinstance(node, ast.ClassDef) and not node.decorator_list else None
        if isinstance(node, ast.ClassDef) and type(cls) in {type, ABCMeta}:
            yield from _in_namespace(f"{path}.{node.name}", node.body, vars(cls), home)


class _AtImport:
    """The effect of the statements of a file, or of a class, on its names while they run.

    Attributes:
        functions: The functions among them.
    """

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.functions = {node.name: node for node in body if isinstance(node, Function)}
        self._written: dict[str, ast.expr | None] = {}
        self._note_assignments(body)
        self._stored = Counter[str]()
        self._used = set[str]()
        for node in _run_at_import(body):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._stored[node.id] += 1
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._used.add(node.id)
        self._set_by_functions = set[str]()
        self._set_by_calls = set[str]()
        for node in body:
            if isinstance(node, Function | ast.ClassDef):
                found = _set_by(node)
                self._set_by_functions |= found
                self._set_by_calls |= found if node.name in self._used else set()
        self._added = self._set_by_functions - bound_by(body)

    def _note_assignments(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            for target, value in assignments(node):
                if isinstance(target, ast.Name):
                    self._written[target.id] = value

    def may_differ(self, name: str, value: object, home: str) -> bool:
        """Tell whether a value may have changed since the import."""
        written = self._written.get(name)
        if isinstance(value, ModuleType) or (name not in self._added and name not in self._written):
            return False
        if name in self._added or _holds(value, home):
            return True
        if self._is_touched(name, written):
            return False
        if is_literal(written):
            return _is_other(value, ast.literal_eval(written))  # type: ignore[arg-type]  # a literal
        if _makes_empty(written):
            return isinstance(value, dict | list | set) and bool(value)
        return (name in self._set_by_functions and _is_object(value)) or _is_changed_by_use(value)

    def _is_touched(self, name: str, written: ast.expr | None) -> bool:
        """Tell whether the file itself may have changed a name after its own statement."""
        can_change = not isinstance(written, ast.Constant)
        return self._stored[name] > 1 or name in self._set_by_calls or (can_change and name in self._used)


def _run_at_import(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield every part of these statements but the bodies of functions."""
    todo = list(body)
    while todo:
        node = todo.pop()
        yield node
        todo += (
            [*node.decorator_list, *node.args.defaults] if isinstance(node, Function) else ast.iter_child_nodes(node)
        )


def _set_by(node: ast.AST) -> set[str]:
    """Return the names outside that a function, or the methods of a class, bind or set parts of."""
    found = set[str]()
    for function in ast.walk(node):
        if isinstance(function, Function):
            found |= _set_outside(function)
    return found


def _set_outside(function: Function) -> set[str]:
    found = declared_global(function.body)
    for node in ast.walk(function):
        if is_set(node) or (called(node) in CHANGES_A_PART and isinstance(node.func, ast.Attribute)):  # type: ignore[attr-defined]  # a call
            found.add(root_name(node))
    return found - own_names(function)


def _is_object(value: object) -> bool:
    return hasattr(value, "__dict__") or looking.module_of(type(value)) in {"numpy", "torch"}


def _is_changed_by_use(value: object) -> bool:
    """Tell whether use changes an object: one that counts or draws, or of a class of the user's that sets its own."""
    kind = type(value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module | torch.optim.Optimizer):
        return True
    if f"{looking.module_of(kind)}.{kind.__name__}" in _CHANGED_BY_USE:
        return True
    if not hasattr(value, "__dict__") or file_of(looking.module_of(kind)) is None:
        return False
    held = looking.own_attributes(value).values()
    methods = [one for cls in kind.__mro__ for name, one in vars(cls).items() if name not in _MAKE]
    return any(map(_is_changed_by_use, held)) or any(map(_changes_its_own, methods))


def _changes_its_own(method: object) -> bool:
    """Tell whether a method sets an attribute, or reaches for a container's method that changes it."""
    steps = dis.get_instructions(method) if isinstance(method, FunctionType) else ()
    return any(one.opname in _STORES or one.argval in CHANGES_A_PART for one in steps)


def _is_changed_function(function: FunctionType, node: Function | None) -> bool:
    """Tell whether calls may have changed what a function keeps: a variable around it, or a default."""
    if any(
        one.opname == "STORE_DEREF" and one.argval in function.__code__.co_freevars
        for one in dis.get_instructions(function)
    ):
        return True
    if node is None or node.decorator_list:
        return False
    pairs = zip(node.args.defaults, function.__defaults__ or (), strict=False)
    return any(is_literal(written) and _is_other(now, ast.literal_eval(written)) for written, now in pairs)


def _holds(value: object, home: str) -> bool:
    """Tell whether a container holds a definition, or an object, of the notebook."""
    return any(home in {looking.attribute(part, "__module__"), looking.module_of(type(part))} for part in _parts(value))


def _parts(value: object) -> list[object]:
    return [*looking.elements(value), *(one for _, one in looking.items(value))]


def _makes_empty(written: ast.expr | None) -> bool:
    """Tell whether an expression is a call such as `dict()` or `defaultdict(list)`."""
    if not isinstance(written, ast.Call) or written.keywords or not all(isinstance(a, ast.Name) for a in written.args):
        return False
    return called(written) in _EMPTY


def _is_other(now: object, written: object) -> bool:
    try:
        return type(now) is not type(written) or bool(now != written)
    except Exception:  # noqa: BLE001 - the value is the user's, and so is its comparison
        return True
