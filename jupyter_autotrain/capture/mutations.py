"""Which objects some code changes in place, by static analysis."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.syntax.scopes import Function, arguments_of, bound_by

_CHANGING = frozenset({
    "add", "append", "appendleft", "clear", "discard", "eval", "extend", "fit", "fit_transform", "insert",
    "load_state_dict", "partial_fit", "pop", "popitem", "popleft", "remove", "reverse", "set_params", "setdefault",
    "sort", "step", "train", "update", "zero_grad",
})  # fmt: skip
_GIVES_NEW = frozenset({("pandas", "add"), ("pandas", "eval"), ("torch", "add"), ("torch", "sort")})
"""Where methods of these names change nothing: they give something new."""
_OF_FIRST_ARGUMENT = frozenset({"delattr", "heappop", "heappush", "insort", "next", "setattr", "shuffle"})


class Mutations:
    """Reads code, and the functions and methods that it uses, for objects that it changes.

    Args:
        code: The code.
        definitions: The functions and classes that it uses.
        namespace: What the names mean.
    """

    def __init__(self, code: ast.Module, definitions: Iterable[ast.Module], namespace: Mapping[str, object]) -> None:
        self._namespace = namespace
        self._bodies = [code, *definitions]
        nodes = [node for body in self._bodies for node in ast.walk(body)]
        self._functions = {node.name: node for node in nodes if isinstance(node, Function)}
        self._classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        self._known: dict[Function, set[str]] = {}

    def names(self) -> set[str]:
        """The module-level names whose objects are changed."""
        return {name for body in self._bodies for name in self._in(body, frozenset())}

    def _in(self, node: ast.AST, local: frozenset[str]) -> Iterator[str]:
        """The names changed at or below a node, those of functions' own variables left out."""
        if isinstance(node, Function | ast.Lambda):
            local |= _own_names(node)
        yield from (name for name in self._by(node) if name not in local)
        for inner in ast.iter_child_nodes(node):
            yield from self._in(inner, local)

    def _by(self, node: ast.AST) -> Iterator[str]:
        """The names changed by this very statement or call."""
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Call):
            yield from self._by_call(node)
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield from _root(node)

    def _by_call(self, call: ast.Call) -> Iterator[str]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        in_place = name.endswith("_") and not name.endswith("__")
        if call.args and (in_place or name in _OF_FIRST_ARGUMENT):
            yield from _root(call.args[0])
        if isinstance(call.func, ast.Attribute):
            owner = list(_root(call.func.value))
            if in_place or _is_asked_to(call) or any(self._changes_itself(one, name) for one in owner):
                yield from owner
        elif name in self._functions:
            yield from self._through(self._functions[name], call)

    def _changes_itself(self, owner: str, method: str) -> bool:
        value = self._namespace.get(owner)
        written = self._method(type(value), method)
        if written is not None:
            return next(iter(_parameters(written)), "") in self._changed_by(written)
        library = looking.module_of(type(value)).partition(".")[0]
        return method in _CHANGING and (library, method) not in _GIVES_NEW

    def _method(self, kind: type, method: str) -> Function | None:
        """The notebook's own text of a method, or nothing."""
        for parent in kind.__mro__:
            body = self._classes[parent.__name__].body if parent.__name__ in self._classes else []
            for node in body:
                if isinstance(node, Function) and node.name == method:
                    return node
        return None

    def _through(self, function: Function, call: ast.Call) -> Iterator[str]:
        """The arguments that a function changes."""
        changed = self._changed_by(function)
        parameters = _parameters(function)
        given = [*zip(parameters, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
        for parameter, argument in given:
            if parameter in changed:
                yield from _root(argument)

    def _changed_by(self, function: Function) -> set[str]:
        """The parameters that a function changes."""
        if function not in self._known:
            self._known[function] = set()  # for a function that calls itself
            parameters = frozenset(_parameters(function))
            local = _own_names(function) - parameters
            found = {name for node in ast.iter_child_nodes(function) for name in self._in(node, local)}
            self._known[function] = found & parameters
        return self._known[function]


def _root(node: ast.expr) -> Iterator[str]:
    """The name that an expression such as `a.b["c"]` starts from."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _is_asked_to(call: ast.Call) -> bool:
    """Whether it passes `inplace=True`."""
    given = [word.value for word in call.keywords if word.arg == "inplace"]
    return any(isinstance(value, ast.Constant) and value.value is True for value in given)


def _parameters(function: Function) -> list[str]:
    """In the order of the arguments of a call."""
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def _own_names(function: Function | ast.Lambda) -> frozenset[str]:
    """Parameters and what the body binds."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    return frozenset(arguments_of(function) | bound_by(body))
