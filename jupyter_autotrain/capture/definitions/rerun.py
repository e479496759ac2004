"""Whether running a definition a second time would change something besides making it again.

A decorator that fills a registry, a class body that draws from a counter, a base that keeps its subclasses: the trial
gets their state as it is now, so that such definitions travel by value and are not run there.
"""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

from jupyter_autotrain.capture.definitions.reproducible import is_atomic
from jupyter_autotrain.capture.syntax.codes import (
    cell_content,
    code_names,
    functions_in,
    has_globals,
    same_code,
    with_nested,
)
from jupyter_autotrain.capture.syntax.history import Binding, BindingKind, History
from jupyter_autotrain.capture.syntax.scopes import Function

_ONLY_READ = (
    abs, all, any, bool, dict, float, frozenset, getattr, hasattr, int, isinstance, issubclass, len, list, max, min,
    property, range, repr, round, set, sorted, staticmethod, classmethod, str, sum, tuple, type,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Notebook:
    """What distinguishes the notebook's own objects from those of libraries.

    Attributes:
        namespace: The notebook's globals.
        history: What its cells bound.
        home: The name of the module that its definitions are in.
    """

    namespace: Mapping[str, object]
    history: History
    home: str

    def is_own(self, value: object) -> bool:
        """True for a function or class that the notebook made."""
        if isinstance(value, FunctionType):
            return has_globals(value, self.namespace)
        return isinstance(value, type) and value.__module__ == self.home

    def is_state(self, name: str) -> bool:
        """True for a variable that the notebook made and that can be changed in place."""
        value = self.namespace.get(name)
        if isinstance(value, ModuleType | type | FunctionType) or is_atomic(value) or name not in self.namespace:
            return False
        last = self.history.last(name)
        return last is not None and last.kind is not BindingKind.IMPORT


def redefinition_effect(value: object, binding: Binding, notebook: Notebook) -> str:
    """What running the definition again would do besides making it, in words; "" when nothing."""
    if isinstance(value, type) and (why := _hook(value, notebook)):
        return why
    for decorator in _decorators(binding.node):
        if not isinstance(decorator, ast.Call) and (why := _call(decorator, (), notebook)):
            return why
        if isinstance(decorator, ast.Call) and (
            why := _call(decorator.func, _given(decorator), notebook, decorates=True)
        ):
            return why
    for node in _running(binding.node):
        if why := _effect_of(node, notebook):
            return why
    return ""


def retained_by(value: object, codes: Iterable[CodeType], binding: Binding, notebook: Notebook) -> str:
    """What a decorated function keeps that its source would not give again; "" when nothing."""
    decorators: list[ast.expr] = getattr(binding.node, "decorator_list", [])
    if not decorators:
        return ""
    named = {part.id for node in decorators for part in ast.walk(node) if isinstance(part, ast.Name)}
    makers = [made for name in named for made in _own_codes(notebook.namespace.get(name), notebook)]
    known = [*codes, *with_nested(makers)]
    for function in functions_in(value, notebook.namespace):
        if not any(same_code(function.__code__, code) for code in known):
            return f"it holds {function.__qualname__}, which came later"
        if any(same_code(function.__code__, code) for code in codes):
            continue
        for cell in function.__closure__ or ():
            if not _is_fixed(cell_content(cell)):
                return "its decorator keeps state"
    return ""


def _is_fixed(content: object) -> bool:
    return isinstance(content, type | ModuleType) or callable(content)


def _own_codes(value: object, notebook: Notebook) -> list[CodeType]:
    if isinstance(value, FunctionType):
        return [value.__code__]
    if isinstance(value, type) and notebook.is_own(value):
        return [part.__code__ for part in vars(value).values() if isinstance(part, FunctionType)]
    return []


def _hook(cls: type, notebook: Notebook) -> str:
    """The notebook's own code that runs when a class is made."""
    for base in cls.__mro__[1:]:
        if notebook.is_own(base) and "__init_subclass__" in vars(base):
            return f"making it runs {base.__name__}.__init_subclass__"
    meta = type(cls)
    if notebook.is_own(meta) and not {"__new__", "__init__", "__prepare__"}.isdisjoint(vars(meta)):
        return f"making it runs its metaclass {meta.__name__}"
    return ""


def _running(node: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a definition that run with it, not when it is called."""
    if isinstance(node, Function):
        yield from node.decorator_list
        yield from (default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None)
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
        for statement in node.body:
            yield from _running(statement)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        yield from (default for default in (*node.value.args.defaults, *node.value.args.kw_defaults) if default)
    else:
        yield node


def _decorators(node: ast.stmt) -> Iterator[ast.expr]:
    """The decorators of a definition, and of those in a class body."""
    yield from getattr(node, "decorator_list", [])
    for statement in node.body if isinstance(node, ast.ClassDef) else []:
        yield from _decorators(statement)


def _effect_of(node: ast.AST, notebook: Notebook) -> str:
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and (why := _call(part.func, _given(part), notebook)):
            return why
        if isinstance(part, ast.Subscript | ast.Attribute) and isinstance(part.ctx, ast.Store | ast.Del):
            root = _root(part)
            if root and notebook.is_state(root):
                return f"making it changes {root}"
    return ""


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _call(function: ast.expr, given: Iterable[ast.expr], notebook: Notebook, *, decorates: bool = False) -> str:
    """What a call that is part of a definition would do."""
    root = _root(function)
    if root is None:
        return ""
    if notebook.is_state(root):
        return f"making it calls {root}"
    value = notebook.namespace.get(root, getattr(builtins, root, None))
    if notebook.is_own(value):
        if why := _reaches(value, notebook, set()):
            return f"making it calls {root}, which {why}"
    elif isinstance(function, ast.Name) and any(value is known for known in _ONLY_READ):
        return ""
    names = {part.id for argument in given for part in ast.walk(argument) if isinstance(part, ast.Name)}
    for name in sorted(names):
        own_class = isinstance(notebook.namespace.get(name), type) and notebook.is_own(notebook.namespace[name])
        if notebook.is_state(name) or (own_class and (decorates or notebook.is_own(value))):
            return f"making it calls {root} with {name}"
    return ""


def _reaches(value: object, notebook: Notebook, seen: set[int]) -> str:
    """What a function of the notebook could change when it is called."""
    if isinstance(value, type):
        return "is a class with state of its own"
    if not isinstance(value, FunctionType) or id(value) in seen:
        return ""
    seen.add(id(value))
    if any(not is_atomic(default) and not _is_fixed(default) for default in value.__defaults__ or ()):
        return "has defaults that can change"
    if any(not is_atomic(cell_content(cell)) and not _is_fixed(cell_content(cell)) for cell in value.__closure__ or ()):
        return "keeps state"
    for code in with_nested([value.__code__]):
        if stored := [step.argval for step in dis.get_instructions(code) if step.opname == "STORE_GLOBAL"]:
            return f"sets {stored[0]}"
    return _reaches_by_name(value, notebook, seen)


def _reaches_by_name(value: FunctionType, notebook: Notebook, seen: set[int]) -> str:
    for name in sorted(code_names(value.__code__)):
        used = notebook.namespace.get(name)
        if notebook.is_state(name) or (isinstance(used, type) and notebook.is_own(used)):
            return f"uses {name}"
        if notebook.is_own(used) and (why := _reaches(used, notebook, seen)):
            return why
    return ""


def _root(node: ast.AST) -> str | None:
    """The name that a chain of attributes, items and calls begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
