"""From a live function or class back to the source that made it.

The last cell that defines a name need not be the one the live object comes from: cells fail half-way, names are
kept under an alias, wrapped or patched. So the compiled source is compared with the object itself.
"""

from __future__ import annotations

import abc
import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.definitions import rerun
from jupyter_autotrain.capture.definitions.class_state import class_state
from jupyter_autotrain.capture.definitions.reproducible import StatementContext, decorated_state, function_state
from jupyter_autotrain.capture.definitions.rerun import Notebook
from jupyter_autotrain.capture.syntax.codes import (
    compiled,
    functions_in,
    has_globals,
    live_codes,
    same_code,
    with_nested,
)
from jupyter_autotrain.capture.syntax.history import Binding, History
from jupyter_autotrain.capture.syntax.scopes import Function

_MAKES_OBJECTS = frozenset({
    "__eq__", "__getnewargs__", "__getnewargs_ex__", "__hash__", "__init_subclass__", "__new__", "__reduce__",
    "__reduce_ex__", "__set_name__", "__setstate__",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class DefinitionSource:
    """Source for a live object.

    Attributes:
        binding: The statement that made it.
        stale: Why it is not the notebook's latest, or "".
        unmakeable: Why running the source again would give something else, or "".
        attributes: What must be set on it after its statement, or deleted: (how to reach it, its value or `DELETED`).
    """

    binding: Binding
    stale: str = ""
    unmakeable: str = ""
    attributes: tuple[tuple[str, object], ...] = ()


def is_definition(value: object, home: str) -> bool:
    """True for functions and classes made in the module `home`, wrapped ones included."""
    if not callable(value) or looking.attribute(value, "__module__") != home:
        return False
    return looking.is_kind(value, type) or isinstance(looking.attribute(value, "__qualname__"), str)


def by_identity(namespace: Mapping[str, object], home: str) -> dict[int, str]:
    """Return the name of each live definition, methods and nested classes among them; its own wins over an alias."""
    named = {name: value for name, value in namespace.items() if name.isidentifier() and is_definition(value, home)}
    found = {id(value): name for name, value in named.items()}
    found |= {id(value): name for name, value in named.items() if looking.attribute(value, "__name__") == name}
    found |= {identity: path for name, value in named.items() for identity, path in own_parts(name, value)}
    found |= {id(value): name for name, value in named.items() if looking.attribute(value, "__qualname__") == name}
    return found


def find(name: str, value: object, notebook: Notebook) -> DefinitionSource | None:
    """The source that made `value`, live under `name`; None when no executed cell holds it."""
    history = notebook.history
    last = history.last(name)
    for binding in history.named(name):
        codes = compiled(binding, history.futures)
        if _made_by(binding, value, codes, notebook, trusted=binding is last):
            return _judge(name, value, binding, codes, notebook)
    return None


def own_parts(path: str, value: object) -> Iterator[tuple[int, str]]:
    """The methods and nested classes of a class by identity, with the path to each."""
    for name, part in vars(value).items() if isinstance(value, type) else ():
        if not looking.is_kind(part, (type, FunctionType)):
            continue
        if part.__qualname__ == f"{value.__qualname__}.{name}":  # type: ignore[attr-defined]
            yield id(part), f"{path}.{name}"
            yield from own_parts(f"{path}.{name}", part)


def runs_when_unpickled(value: object) -> bool:
    """True for a class with methods that rebuilding its instances may call."""
    return isinstance(value, type) and not _MAKES_OBJECTS.isdisjoint(vars(value))


def _judge(name: str, value: object, binding: Binding, codes: list[CodeType], notebook: Notebook) -> DefinitionSource:
    history = notebook.history
    stale = ""
    newer = [b for b in history.bindings(name) if b.position > binding.position]
    if newer and newer[-1].kind is binding.kind:
        stale = f"{newer[-1].label} defines {name} again, but the live one is from {binding.label}"
    elif again := _rerun_without(binding, history):
        stale = f"its cell ran again as {again}, without {name}"
    if why := _unmakeable(name, value, binding, codes, notebook):
        return DefinitionSource(binding, stale, why)
    return DefinitionSource(binding, stale, attributes=tuple(_state(name, value, binding, codes, notebook)))


def _rerun_without(binding: Binding, history: History) -> str:
    index = binding.position[0]
    cell_id = binding.cell.cell_id
    later = [cell for cell in history.cells[index + 1 :] if cell_id and cell.cell_id == cell_id]
    return later[-1].label if later else ""


def _unmakeable(name: str, value: object, binding: Binding, codes: list[CodeType], notebook: Notebook) -> str:
    names = notebook.history.names_of(binding)
    for used in sorted(names.eager - {name}):
        if why := notebook.history.changed_since(used, binding.position):
            return f"made before {why}"
    if name in names.eager:
        return f"it extends an earlier {name}"
    if why := rerun.redefinition_effect(value, binding, notebook) or rerun.retained_by(
        value, with_nested(codes), binding, notebook
    ):
        return why
    return _changed(name, value, binding, codes, notebook)


def _changed(name: str, value: object, binding: Binding, codes: list[CodeType], notebook: Notebook) -> str:
    """What has changed in the object that no setting of attributes could change in another; "" when nothing."""
    if isinstance(value, type) and isinstance(binding.node, ast.ClassDef):
        return _other_class(value, binding.node, notebook)
    if _wrapped_changed(value, binding, StatementContext(notebook.namespace, with_nested(codes), {})):
        return "its default or an attribute has changed"
    return "" if isinstance(value, FunctionType | type) else notebook.history.patches(name, binding.position)


def _wrapped_changed(value: object, binding: Binding, scope: StatementContext) -> bool:
    """Whether a function that a decorator has wrapped holds something else than its statement gives it."""
    if not isinstance(binding.node, Function) or not binding.node.decorator_list:
        return False
    inner = [function for function in functions_in(value, scope.namespace) if scope.made(function)]
    named = [function for function in inner if function is not value and function.__code__.co_name == binding.name]
    return any(any(decorated_state("", function, binding.node, scope)) for function in named)


def _other_class(value: type, node: ast.ClassDef, notebook: Notebook) -> str:
    """Why no setting of attributes could make the class what it is now; "" when it could."""
    for base in value.__mro__[1:]:
        known = base.__module__ != notebook.home or notebook.namespace.get(base.__name__) is base
        if base in value.__bases__ and not known:
            return f"its base {base.__name__} is not the notebook's"
    reproducible = [part.id for part in node.bases if isinstance(part, ast.Name)]
    live = [base.__name__ for base in value.__bases__]
    plain = len(reproducible) == len(node.bases) and "__orig_bases__" not in vars(value) and not node.decorator_list
    if (
        plain
        and [notebook.namespace.get(n, getattr(builtins, n, None)) for n in reproducible] != [*value.__bases__]
        and (reproducible or live != ["object"])
    ):
        return "its bases were replaced"
    if isinstance(value, abc.ABCMeta) and abc._get_dump(value)[0]:  # type: ignore[attr-defined]  # noqa: SLF001 - no public way
        return "classes were registered at it"
    return ""


def _state(
    name: str, value: object, binding: Binding, codes: list[CodeType], notebook: Notebook
) -> Iterator[tuple[str, object]]:
    scope = StatementContext(notebook.namespace, with_nested(codes), {})
    if isinstance(value, type) and isinstance(binding.node, ast.ClassDef):
        yield from class_state(name, value, binding.node, scope)
    elif isinstance(value, FunctionType):
        yield from _function(name, value, binding, scope)


def _function(
    name: str, value: FunctionType, binding: Binding, scope: StatementContext
) -> Iterator[tuple[str, object]]:
    node = binding.node.value if isinstance(binding.node, ast.Assign) else binding.node
    if not isinstance(node, Function | ast.Lambda):
        return
    if isinstance(node, ast.Lambda) or not node.decorator_list:
        yield from function_state(name, value, node, scope)
        return
    if scope.made(value):
        yield from decorated_state(name, value, node, scope)
        return
    for attribute, content in list(vars(value).items()):
        if not attribute.startswith("_") and not callable(content):
            yield f"{name}.{attribute}", content


def _made_by(binding: Binding, value: object, codes: list[CodeType], notebook: Notebook, *, trusted: bool) -> bool:
    """Whether this statement made the value; a decorator's result that cannot be traced is accepted when `trusted`."""
    node = binding.node
    if isinstance(node, ast.ClassDef):
        return isinstance(value, type) and _class_made_by(value, node, codes, trusted=trusted)
    decorated = bool(getattr(node, "decorator_list", ()))
    if isinstance(value, FunctionType) and not has_globals(value, notebook.namespace) and not decorated:
        return False
    live = list(live_codes(value, set()))
    own = [code for code in codes if code.co_name == (node.name if isinstance(node, Function) else "<lambda>")]
    if any(same_code(mine, theirs) for mine in own for theirs in live):
        closed = isinstance(value, FunctionType) and bool(value.__closure__)
        return not closed or decorated
    return trusted and decorated


def _class_made_by(value: type, node: ast.ClassDef, codes: list[CodeType], *, trusted: bool) -> bool:
    """Whether the methods that still bear the class's name are those of the statement."""
    if node.decorator_list and trusted:
        return True
    methods = [code for body in codes for code in body.co_consts if isinstance(code, CodeType)]
    for name in {part.name for part in node.body if isinstance(part, Function) and not part.decorator_list}:
        live = vars(value).get(name)
        if not isinstance(live, FunctionType) or live.__qualname__ != f"{value.__qualname__}.{name}":
            continue
        reproducible = [code for code in methods if code.co_name == name]
        if not any(same_code(code, live.__code__) for code in reproducible):
            return False
    hints = {s.target.id for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
    annotated = {name for name, _ in looking.items(vars(value).get("__annotations__"))}
    return hints == annotated and value.__name__ == node.name


def is_shells_own(name: str, value: object) -> bool:
    """True for a builtin that IPython replaced in the user's namespace, such as `open` or `exit`."""
    plain = getattr(builtins, name, None)
    replaced = looking.module_of(type(value)).startswith("IPython") or looking.attribute(value, "__wrapped__") is plain
    return plain is not None and replaced
