"""Whether an expression of the notebook, run again in the trial, gives the live value."""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

from jupyter_autotrain.capture.syntax.codes import has_globals, same_code
from jupyter_autotrain.capture.syntax.history import is_literal
from jupyter_autotrain.capture.syntax.scopes import Function

ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
_EMPTY_WHEN_CALLED = frozenset(
    {int, float, complex, bool, str, bytes, list, dict, set, frozenset, tuple, Counter, OrderedDict, deque}
)
_UNKNOWN = object()


@dataclass(frozen=True, slots=True)
class StatementContext:
    """What the names in an expression mean, and the code that its statement compiles to.

    Attributes:
        namespace: The notebook's globals.
        codes: The code objects of the statement.
        own: What the class body around it has bound, or nothing.
    """

    namespace: Mapping[str, object]
    codes: Collection[CodeType]
    own: Mapping[str, object]

    def made(self, value: object) -> bool:
        """Whether a function is one that the statement makes, with the notebook's globals."""
        if not isinstance(value, FunctionType) or not has_globals(value, self.namespace):
            return False
        return any(same_code(code, value.__code__) for code in self.codes)

    def lookup(self, name: str) -> object:
        """What a name means in the statement."""
        for names in (self.own, self.namespace, vars(builtins)):
            if name in names:
                return names[name]
        return _UNKNOWN


def is_atomic(value: object) -> bool:
    """True for numbers, text and tuples of them: a copy is as good as the value itself."""
    if type(value) is tuple:
        return all(is_atomic(part) for part in value)
    return type(value) in ATOMS


def can_be_written(value: object) -> bool:
    """True for an atomic value whose `repr` is Python for it."""
    return is_atomic(value) and not any(word in repr(value) for word in ("inf", "nan"))


def evaluates_to(node: ast.expr, live: object, scope: StatementContext, *, alone: bool) -> bool:
    """Whether the expression is sure to give the live value.

    Args:
        node: The expression.
        live: The value now.
        scope: What the names in it mean.
        alone: Whether nothing else in the notebook refers to the live value.
    """
    if is_literal(node):
        return _is_literal_of(node, live, alone=alone)
    if isinstance(node, ast.Name | ast.Attribute):
        found = _resolve(node, scope)
        return found is live or (is_atomic(live) and type(found) is type(live) and repr(found) == repr(live))
    if isinstance(node, ast.Tuple):
        parts = live if type(live) is tuple and len(live) == len(node.elts) else None
        return parts is not None and all(
            evaluates_to(part, value, scope, alone=False) for part, value in zip(node.elts, parts, strict=True)
        )
    if isinstance(node, ast.Lambda):
        return scope.made(live) and not any(function_state("", live, node, scope))
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        return _is_empty(node.func, live, scope, alone=alone)
    return False


def function_state(
    path: str, live: object, node: ast.Lambda | Function, scope: StatementContext
) -> Iterator[tuple[str, object]]:
    """What a function holds besides its code, where its statement would not give it: (how to reach it, the value)."""
    if not isinstance(live, FunctionType):
        return
    if not _same_defaults(node.args.defaults, live.__defaults__, scope):
        yield f"{path}.__defaults__", live.__defaults__
    reproducible = {a.arg: value for a, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value}
    if not _same_keyword_defaults(reproducible, live.__kwdefaults__ or {}, scope):
        yield f"{path}.__kwdefaults__", live.__kwdefaults__
    for name in list(vars(live)):
        if name != "__isabstractmethod__":
            yield f"{path}.{name}", vars(live)[name]
    yield from _function_words(path, live, node)


def decorated_state(path: str, live: object, node: Function, scope: StatementContext) -> Iterator[tuple[str, object]]:
    """The same for a function with decorators, which give it a name, a documentation and private attributes."""
    for found, value in function_state(path, live, node, scope):
        name = found.rpartition(".")[2]
        if name in {"__defaults__", "__kwdefaults__"} or not name.startswith("_"):
            yield found, value


def _function_words(path: str, live: FunctionType, node: ast.Lambda | Function) -> Iterator[tuple[str, object]]:
    """The name and the documentation of a function, where they were set by hand."""
    if isinstance(node, ast.Lambda):
        return
    if live.__name__ != node.name:
        yield f"{path}.__name__", live.__name__
    if not same_text(live.__doc__, ast.get_docstring(node, clean=False)):
        yield f"{path}.__doc__", live.__doc__


def same_text(live: object, reproducible: str | None) -> bool:
    """Whether two documentations are the same; newer compilers take the indentation off."""
    if not isinstance(live, str) or reproducible is None:
        return live is reproducible
    return live.split() == reproducible.split()


def is_sole_owner(holder: Mapping[str, object] | tuple[object, ...], key: object) -> bool:
    """Whether the holder is the only one in this process that refers to what it holds under a key."""
    return sys.getrefcount(holder[key]) <= _SOLE_REFERENCES  # type: ignore[index, call-overload]  # a tuple's are places


def _references(holder: Mapping[str, object]) -> int:
    return sys.getrefcount(holder["key"])


_SOLE_REFERENCES = _references({"key": []})


def _same_defaults(reproducible: list[ast.expr], live: tuple[object, ...] | None, scope: StatementContext) -> bool:
    values = live or ()
    if len(reproducible) != len(values):
        return False
    alone = [is_sole_owner(values, index) for index in range(len(values))]
    return all(evaluates_to(node, values[i], scope, alone=alone[i]) for i, node in enumerate(reproducible))


def _same_keyword_defaults(
    reproducible: Mapping[str, ast.expr], live: Mapping[str, object], scope: StatementContext
) -> bool:
    if set(reproducible) != set(live):
        return False
    alone = {name: is_sole_owner(live, name) for name in live}
    return all(evaluates_to(node, live[name], scope, alone=alone[name]) for name, node in reproducible.items())


def _is_literal_of(node: ast.expr, live: object, *, alone: bool) -> bool:
    reproducible = ast.literal_eval(node)
    if type(reproducible) is not type(live):
        return False
    if is_atomic(reproducible):
        return repr(reproducible) == repr(live)
    if not alone or not isinstance(live, list | dict | set):
        return False
    flat = all(is_atomic(part) for part in (live.values() if isinstance(live, dict) else live))
    same = reproducible == live if isinstance(live, set) else repr(reproducible) == repr(live)
    return flat and same


def _resolve(node: ast.expr, scope: StatementContext) -> object:
    """What a dotted name means; attributes are read of modules and classes only."""
    if isinstance(node, ast.Name):
        return scope.lookup(node.id)
    if not isinstance(node, ast.Attribute):
        return _UNKNOWN
    owner = _resolve(node.value, scope)
    return getattr(owner, node.attr, _UNKNOWN) if isinstance(owner, ModuleType | type) else _UNKNOWN


def _is_empty(function: ast.expr, live: object, scope: StatementContext, *, alone: bool) -> bool:
    """Whether a call such as `dict()` still stands for what it gave."""
    maker = _resolve(function, scope)
    if not isinstance(maker, type) or maker not in _EMPTY_WHEN_CALLED or type(live) is not maker:
        return False
    return repr(live) == repr(maker()) and (alone or is_atomic(live))
