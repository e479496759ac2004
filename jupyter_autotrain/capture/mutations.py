"""The objects that some code changes in place, found by static analysis, and the captured ones among them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.syntax.nodes import called, is_set, keywords_of, root_name
from jupyter_autotrain.capture.syntax.scopes import Function, own_names

_CHANGING = frozenset({
    "add", "append", "appendleft", "clear", "discard", "eval", "extend", "fit", "fit_transform", "insert",
    "load_state_dict", "partial_fit", "pop", "popitem", "popleft", "remove", "reverse", "set_params", "setdefault",
    "sort", "step", "train", "update", "zero_grad",
})  # fmt: skip
_GIVES_NEW = frozenset({("pandas", "add"), ("pandas", "eval"), ("torch", "add"), ("torch", "sort")})
"""Where methods of these names change nothing: they give something new."""
_OF_FIRST_ARGUMENT = frozenset({"delattr", "heappop", "heappush", "insort", "next", "setattr", "shuffle"})


class Mutations:
    """A reader of code, with the functions and methods that it uses, for objects that it changes.

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
        """Return the module-level names whose objects are changed."""
        return {name for body in self._bodies for name in self._in(body, frozenset())}

    def _in(self, node: ast.AST, local: frozenset[str]) -> Iterator[str]:
        """Yield the names changed at or below a node, without those of functions' own variables."""
        if isinstance(node, Function | ast.Lambda):
            local |= own_names(node)
        for name in self._by(node):
            if name not in local:
                yield name
        for inner in ast.iter_child_nodes(node):
            yield from self._in(inner, local)

    def _by(self, node: ast.AST) -> Iterator[str]:
        """Yield the names changed by this very statement or call."""
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Call):
            yield from self._by_call(node)
        elif is_set(node):
            yield _root(node)

    def _by_call(self, call: ast.Call) -> Iterator[str]:
        name = called(call)
        in_place = name.endswith("_") and not name.endswith("__")
        if call.args and (in_place or name in _OF_FIRST_ARGUMENT):
            yield _root(call.args[0])
        if isinstance(call.func, ast.Attribute):
            owner = _root(call.func.value)
            if in_place or _is_asked_to(call) or self._changes_itself(owner, name):
                yield owner
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
        """Return the notebook's own text of a method, or nothing."""
        for parent in kind.__mro__:
            body = self._classes[parent.__name__].body if parent.__name__ in self._classes else []
            for node in body:
                if isinstance(node, Function) and node.name == method:
                    return node
        return None

    def _through(self, function: Function, call: ast.Call) -> Iterator[str]:
        """Yield the names of the arguments that a function changes."""
        changed = self._changed_by(function)
        parameters = _parameters(function)
        given = [*zip(parameters, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
        for parameter, argument in given:
            if parameter in changed:
                yield _root(argument)

    def _changed_by(self, function: Function) -> set[str]:
        """Return the parameters that a function changes."""
        if function not in self._known:
            self._known[function] = set()  # for a function that calls itself
            parameters = frozenset(_parameters(function))
            local = frozenset(own_names(function) - parameters)
            found = {name for node in ast.iter_child_nodes(function) for name in self._in(node, local)}
            self._known[function] = found & parameters
        return self._known[function]


def _root(node: ast.AST) -> str:
    """Return the name that an expression such as `a.b["c"]` starts from, or ""."""
    return root_name(node, through_calls=False)


def _is_asked_to(call: ast.Call) -> bool:
    """Tell whether a call passes `inplace=True`."""
    return any(isinstance(value, ast.Constant) and value.value is True for value in keywords_of(call, "inplace"))


def _parameters(function: Function) -> list[str]:
    """Return the parameters in the order of the arguments of a call."""
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


# Captured objects that the cell changes in place: the trial changes copies, the notebook's own stay as they were


_SHOWN = 6
_UNCHANGEABLE = (int, float, complex, str, bytes, tuple, frozenset, range, type, type(None))


def find(
    code: ast.Module, items: Iterable[Item], namespace: Mapping[str, object], returns: Collection[str]
) -> list[Difference]:
    """Return one difference that names all captured variables that the cell changes.

    The list is empty where there are none.

    Found by reading the code: a change behind another name, or inside a library, is not seen.

    Args:
        code: The cell's own code.
        items: What was captured.
        namespace: The notebook's globals.
        returns: Names that come back anyway.
    """
    items = list(items)
    written = [ast.parse(item.text) for item in items if item.how == "source"]
    values = {item.name: namespace.get(item.name) for item in items if item.how == "data"}
    changed = {name for name in Mutations(code, written, namespace).names() if _can_change(name, values)}
    changed |= _trained([values[name] for name in changed], values)
    names = sorted(changed - set(returns))
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [Difference(DifferenceKind.COPIED, f"{', '.join(names[:_SHOWN])}{more}: {_meaning(one=len(names) == 1)}")]


def _meaning(*, one: bool) -> str:
    if one:
        return "the trial changes a copy; this one here stays as it is (`returns:` brings it back)"
    return "the trial changes copies; these here stay as they are (`returns:` brings them back)"


def _can_change(name: str, values: Mapping[str, object]) -> bool:
    return name in values and not looking.is_kind(values[name], _UNCHANGEABLE)


def _trained(changed: Iterable[object], values: Mapping[str, object]) -> set[str]:
    """Return the names of models whose parameters a changed optimizer holds."""
    groups = [group for value in changed for group in _groups(value)]
    held = {id(parameter) for group in groups for parameter in group.get("params", ())}
    return {name for name, value in values.items() if not held.isdisjoint(_held_parameters(value))}


def _groups(optimizer: object) -> list[dict[str, list[object]]]:
    found = looking.own_attributes(optimizer).get("param_groups")
    return found if isinstance(found, list) else []


def _held_parameters(module: object) -> Iterator[int]:
    """Yield the identities of a PyTorch module's parameters, read from its own dictionaries."""
    own = looking.own_attributes(module)
    yield from (id(parameter) for _, parameter in looking.items(own.get("_parameters")))
    for _, inner in looking.items(own.get("_modules")):
        yield from _held_parameters(inner)
