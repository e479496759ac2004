"""A judgment on definitions: those whose second run would change something besides making them again.

A decorator that fills a registry, a class body that draws from a counter, a base that keeps its subclasses: the trial
gets their state as it is now, so that such definitions travel by value and are not run there.
"""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Collection, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType

from jupyter_autotrain.capture.definitions.unchanged import is_atomic
from jupyter_autotrain.capture.syntax.codes import (
    cell_content,
    code_names,
    functions_in,
    has_globals,
    is_among,
    with_nested,
)
from jupyter_autotrain.capture.syntax.history import Binding, BindingKind, History
from jupyter_autotrain.capture.syntax.nodes import arguments_of, is_set, names_in, root_name
from jupyter_autotrain.capture.syntax.scopes import Function, defaults_of

_ONLY_READ = (
    abs, all, any, bool, dict, float, frozenset, getattr, hasattr, int, isinstance, issubclass, len, list, max, min,
    property, range, repr, round, set, sorted, staticmethod, classmethod, str, sum, tuple, type,
)  # fmt: skip


def is_own(value: object, history: History) -> bool:
    """Tell whether a value is a function or class that the notebook made."""
    if isinstance(value, FunctionType):
        return has_globals(value, history.values)
    return isinstance(value, type) and value.__module__ == history.home


def is_state(name: str, history: History) -> bool:
    """Tell whether a name is a variable that the notebook made and that can be changed in place."""
    value = history.values.get(name)
    if isinstance(value, ModuleType | type | FunctionType) or is_atomic(value) or name not in history.values:
        return False
    last = history.last(name)
    return last is not None and last.kind is not BindingKind.IMPORT


def redefinition_effect(value: object, binding: Binding, history: History) -> str:
    """Return the effect of running the definition again, besides making it, in words; "" when it has none."""
    if isinstance(value, type) and (why := _hook(value, history)):
        return why
    for decorator in _decorators(binding.node):
        if not isinstance(decorator, ast.Call) and (why := _call(decorator, (), history)):
            return why
        if isinstance(decorator, ast.Call) and (
            why := _call(decorator.func, arguments_of(decorator), history, decorates=True)
        ):
            return why
    for node in _running(binding.node):
        if why := _effect_of(node, history):
            return why
    return ""


def retained_by(value: object, codes: Iterable[CodeType], binding: Binding, history: History) -> str:
    """Return the state of a decorated function that its source would not give again; "" for none."""
    decorators: list[ast.expr] = getattr(binding.node, "decorator_list", [])
    if not decorators:
        return ""
    makers = [made for name in names_in(*decorators) for made in _own_codes(history.values.get(name), history)]
    known = [*codes, *with_nested(makers)]
    for function in functions_in(value, history.values):
        if not is_among(function.__code__, known):
            return f"it holds {function.__qualname__}, which came later"
        if not is_among(function.__code__, codes) and not all(map(_is_fixed, _closure(function))):
            return "its decorator keeps state"
    return ""


def _closure(function: FunctionType) -> list[object]:
    return list(map(cell_content, function.__closure__ or ()))


def _is_fixed(content: object) -> bool:
    return isinstance(content, type | ModuleType) or callable(content)


def _can_change(content: object) -> bool:
    return not is_atomic(content) and not _is_fixed(content)


def _own_codes(value: object, history: History) -> list[CodeType]:
    if isinstance(value, FunctionType):
        return [value.__code__]
    if isinstance(value, type) and is_own(value, history):
        return [part.__code__ for part in vars(value).values() if isinstance(part, FunctionType)]
    return []


def _hook(cls: type, history: History) -> str:
    """Return the notebook's own code that runs when a class is made, in words; "" for none."""
    for base in cls.__mro__[1:]:
        if is_own(base, history) and "__init_subclass__" in vars(base):
            return f"making it runs {base.__name__}.__init_subclass__"
    meta = type(cls)
    if is_own(meta, history) and not {"__new__", "__init__", "__prepare__"}.isdisjoint(vars(meta)):
        return f"making it runs its metaclass {meta.__name__}"
    return ""


def _running(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a definition that run with it, not when it is called."""
    if isinstance(node, Function):
        yield from (*node.decorator_list, *defaults_of(node))
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
        for statement in node.body:
            yield from _running(statement)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        yield from defaults_of(node.value)
    else:
        yield node


def _decorators(node: ast.stmt) -> Iterator[ast.expr]:
    """Yield the decorators of a definition, and of those in a class body."""
    yield from getattr(node, "decorator_list", [])
    for statement in node.body if isinstance(node, ast.ClassDef) else []:
        yield from _decorators(statement)


def _effect_of(node: ast.AST, history: History) -> str:
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and (why := _call(part.func, arguments_of(part), history)):
            return why
        if is_set(part) and is_state(root_name(part), history):
            return f"making it changes {root_name(part)}"
    return ""


def _call(function: ast.expr, given: Iterable[ast.expr], history: History, *, decorates: bool = False) -> str:
    """Return the effect of a call that is part of a definition, in words; "" for none."""
    root = root_name(function)
    if not root:
        return ""
    if is_state(root, history):
        return f"making it calls {root}"
    value = history.values.get(root, getattr(builtins, root, None))
    if is_own(value, history):
        if why := _reaches(value, history, set()):
            return f"making it calls {root}, which {why}"
    elif isinstance(function, ast.Name) and any(value is known for known in _ONLY_READ):
        return ""
    state = _state_among(names_in(*given), history, classes=decorates or is_own(value, history))
    return f"making it calls {root} with {state}" if state else ""


def _state_among(names: Collection[str], history: History, *, classes: bool) -> str:
    """Return the first of these names that is one of a variable, or of a class of the notebook where these count."""
    for name in sorted(names):
        value = history.values.get(name)
        if is_state(name, history) or (classes and isinstance(value, type) and is_own(value, history)):
            return name
    return ""


def _reaches(value: object, history: History, seen: set[int]) -> str:
    """Return the possible change by a call of a function of the notebook, in words; "" for none."""
    if isinstance(value, type):
        return "is a class with state of its own"
    if not isinstance(value, FunctionType) or id(value) in seen:
        return ""
    seen.add(id(value))
    if any(map(_can_change, value.__defaults__ or ())):
        return "has defaults that can change"
    if any(map(_can_change, _closure(value))):
        return "keeps state"
    for code in with_nested([value.__code__]):
        for step in dis.get_instructions(code):
            if step.opname == "STORE_GLOBAL":
                return f"sets {step.argval}"
    return _reaches_by_name(value, history, seen)


def _reaches_by_name(value: FunctionType, history: History, seen: set[int]) -> str:
    for name in sorted(code_names(value.__code__)):
        used = history.values.get(name)
        if is_state(name, history) or (isinstance(used, type) and is_own(used, history)):
            return f"uses {name}"
        if is_own(used, history) and (why := _reaches(used, history, seen)):
            return why
    return ""
