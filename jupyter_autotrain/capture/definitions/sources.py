"""The way from a live function or class back to the source that made it.

The last cell that defines a name need not be the one the live object comes from: cells fail half-way, names are
kept under an alias, wrapped or patched. So the compiled source is compared with the object itself.
"""

from __future__ import annotations

import abc
import ast
import builtins
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.definitions import rerun
from jupyter_autotrain.capture.definitions.unchanged import StatementContext, is_class_unchanged, is_function_unchanged
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.syntax.codes import (
    code_names,
    compiled,
    functions_in,
    has_globals,
    is_among,
    live_codes,
    with_nested,
)
from jupyter_autotrain.capture.syntax.history import Binding, BindingKind, History
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
    """

    binding: Binding
    stale: str = ""
    unmakeable: str = ""


def is_definition(value: object, home: str) -> bool:
    """Tell whether a value is a function or class made in the module `home`, wrapped ones included."""
    if not callable(value) or looking.attribute(value, "__module__") != home:
        return False
    return looking.is_kind(value, type) or isinstance(looking.attribute(value, "__qualname__"), str)


def by_identity(history: History) -> dict[int, str]:
    """Return the name of each live definition, methods and nested classes among them; its own wins over an alias."""
    own = {name: value for name, value in history.values.items() if is_definition(value, history.home)}
    named = {name: value for name, value in own.items() if name.isidentifier()}
    found = {id(value): name for name, value in named.items()}
    found |= _known_by("__name__", named)
    for name, value in named.items():
        found |= dict(own_parts(name, value))
    return found | _known_by("__qualname__", named)


def _known_by(attribute: str, named: Mapping[str, object]) -> dict[int, str]:
    return {id(value): name for name, value in named.items() if looking.attribute(value, attribute) == name}


def find(name: str, value: object, history: History) -> DefinitionSource | None:
    """Return the source that made `value`, live under `name`; None when no executed cell holds it."""
    last = history.last(name)
    for binding in history.named(name):
        codes = compiled(binding, history.futures)
        if _made_by(binding, value, codes, history, trusted=binding is last):
            return _judge(name, value, binding, codes, history)
    return None


def own_parts(path: str, value: object) -> Iterator[tuple[int, str]]:
    """Yield the methods and nested classes of a class by identity, with the path to each."""
    for name, part in vars(value).items() if isinstance(value, type) else ():
        if not looking.is_kind(part, (type, FunctionType)):
            continue
        if part.__qualname__ == f"{value.__qualname__}.{name}":  # type: ignore[attr-defined]
            yield id(part), f"{path}.{name}"
            yield from own_parts(f"{path}.{name}", part)


def runs_when_unpickled(value: object) -> bool:
    """Tell whether a class has methods that rebuilding its instances may call."""
    return isinstance(value, type) and not _MAKES_OBJECTS.isdisjoint(vars(value))


def _judge(name: str, value: object, binding: Binding, codes: list[CodeType], history: History) -> DefinitionSource:
    stale = ""
    newer = [b for b in history.bindings(name) if b.position > binding.position]
    if newer and newer[-1].kind is binding.kind:
        stale = f"{newer[-1].label} defines {name} again, but the live one is from {binding.label}"
    elif again := _rerun_without(binding, history):
        stale = f"its cell ran again as {again}, without {name}"
    return DefinitionSource(binding, stale, _unmakeable(name, value, binding, codes, history))


def _rerun_without(binding: Binding, history: History) -> str:
    index = binding.position[0]
    cell_id = binding.cell.cell_id
    later = [cell for cell in history.cells[index + 1 :] if cell_id and cell.cell_id == cell_id]
    return later[-1].label if later else ""


def _unmakeable(name: str, value: object, binding: Binding, codes: list[CodeType], history: History) -> str:
    names = history.names_of(binding)
    for used in sorted(names.eager - {name}):
        if why := history.changed_since(used, binding.position):
            return f"made before {why}"
    if name in names.eager:
        return f"it extends an earlier {name}"
    if why := rerun.redefinition_effect(value, binding, history) or rerun.retained_by(
        value, with_nested(codes), binding, history
    ):
        return why
    return _changed(name, value, binding, codes, history)


def _changed(name: str, value: object, binding: Binding, codes: list[CodeType], history: History) -> str:
    """Return the change of the object since its statement; "" for none."""
    scope = StatementContext(history.values, with_nested(codes), {})
    node = binding.node.value if isinstance(binding.node, ast.Assign) else binding.node
    if isinstance(value, type) and isinstance(node, ast.ClassDef):
        if why := _other_class(value, node, history):
            return why
        return "" if is_class_unchanged(value, node, scope) else "it has changed since its statement"
    if isinstance(node, Function | ast.Lambda) and not _is_as_written(value, node, scope):
        return "its default or an attribute has changed"
    return "" if isinstance(value, FunctionType | type) else history.patches(name, binding.position)


def _is_as_written(value: object, node: Function | ast.Lambda, scope: StatementContext) -> bool:
    """Tell whether a function, or those in what a decorator made of it, have what the statement gives them."""
    decorated = isinstance(node, Function) and node.decorator_list
    functions = functions_in(value, scope.namespace) if decorated else [value]
    made = [one for one in functions if isinstance(one, FunctionType) and scope.made(one)]
    named = [one for one in made if one.__code__.co_name == _named(node)]
    return all(is_function_unchanged(one, node, scope) for one in named) and not _is_set_on(value, named)


def _named(node: Function | ast.Lambda) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


def _is_set_on(value: object, made: list[FunctionType]) -> bool:
    """Tell whether attributes were set on what a decorator gave for a function."""
    if not isinstance(value, FunctionType) or value in made:
        return False
    return any(not name.startswith("_") and not callable(content) for name, content in vars(value).items())


def _other_class(value: type, node: ast.ClassDef, history: History) -> str:
    """Return the reason why setting attributes could not make the class as it is now; "" when it could."""
    for base in value.__bases__:
        if base.__module__ == history.home and history.values.get(base.__name__) is not base:
            return f"its base {base.__name__} is not the notebook's"
    if _has_other_bases(value, node, history):
        return "its bases were replaced"
    if isinstance(value, abc.ABCMeta) and abc._get_dump(value)[0]:  # type: ignore[attr-defined]  # noqa: SLF001 - no public way
        return "classes were registered at it"
    return ""


def _has_other_bases(value: type, node: ast.ClassDef, history: History) -> bool:
    """Tell whether the bases of a class are others than its statement names; False where that is not known."""
    names = [part.id for part in node.bases if isinstance(part, ast.Name)]
    if len(names) < len(node.bases) or "__orig_bases__" in vars(value) or node.decorator_list:
        return False
    written = [history.values.get(name, getattr(builtins, name, None)) for name in names]
    return (written or [object]) != [*value.__bases__]


def _made_by(binding: Binding, value: object, codes: list[CodeType], history: History, *, trusted: bool) -> bool:
    """Tell whether this statement made the value.

    A decorator's result that cannot be traced is accepted when `trusted`.
    """
    node = binding.node
    if isinstance(node, ast.ClassDef):
        return isinstance(value, type) and _class_made_by(value, node, codes, trusted=trusted)
    decorated = bool(getattr(node, "decorator_list", ()))
    is_closed = isinstance(value, FunctionType) and bool(value.__closure__)
    if not decorated and isinstance(value, FunctionType) and not has_globals(value, history.values):
        return False
    name = _named(node) if isinstance(node, Function) else "<lambda>"
    own = [code for code in codes if code.co_name == name]
    if any(is_among(live, own) for live in live_codes(value, set())):
        return decorated or not is_closed
    return trusted and decorated


def _class_made_by(value: type, node: ast.ClassDef, codes: list[CodeType], *, trusted: bool) -> bool:
    """Tell whether the methods that still bear the class's name are those of the statement."""
    if node.decorator_list and trusted:
        return True
    inner = with_nested(codes)
    methods = [part.name for part in node.body if isinstance(part, Function) and not part.decorator_list]
    if not all(_is_live(value, method, inner) for method in methods):
        return False
    hints = {s.target.id for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
    return hints == _annotated(value) and value.__name__ == node.name


def _annotated(cls: type) -> set[str]:
    """Return the names that a class's own annotations are for; since Python 3.14 they are made when asked for."""
    own = vars(cls)
    made = own.get("__annotations__", own.get("__annotations_cache__"))
    if sys.version_info >= (3, 14) and made is None:
        from annotationlib import Format, get_annotations  # noqa: PLC0415 - Python 3.14 has it

        return set(get_annotations(cls, format=Format.STRING))  # as text: nothing of the user's is called
    return {str(name) for name, _ in looking.items(made)}


def _is_live(cls: type, method: str, codes: Iterable[CodeType]) -> bool:
    """Tell whether a class has one of these codes under the name of a method, or something that was put there since."""
    live = vars(cls).get(method)
    if not isinstance(live, FunctionType) or live.__qualname__ != f"{cls.__qualname__}.{method}":
        return True
    return is_among(live.__code__, (code for code in codes if code.co_name == method))


def is_shells_own(name: str, value: object) -> bool:
    """Tell whether a name is a builtin that IPython replaced in the user's namespace.

    Such names are `open` and `exit`.
    """
    plain = getattr(builtins, name, None)
    replaced = looking.module_of(type(value)).startswith("IPython") or looking.attribute(value, "__wrapped__") is plain
    return plain is not None and replaced


# Names that travel as data: why one cannot, and why its value may not be what the notebook's text gives now


_ASK_A_PERSON = frozenset({"breakpoint", "input"})


def kernel_only(name: str, value: object, *, is_bound: bool) -> str:
    """Return the reason why a name without source and import cannot travel; "" when it may be data."""
    if not is_bound or name == "get_ipython":
        return "a part of IPython, which trials do not have"
    if looking.is_kind(value, types.ModuleType):
        return "a module that exists only in this kernel's memory"
    if type(value) is types.FunctionType and "get_ipython" in code_names(value.__code__):
        return "a function with IPython's own syntax (% or !): write these lines as plain Python"
    return ""


def waiting_for_input(called: Collection[str], bound: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the called builtins that wait for input, and the reason why a trial cannot call them."""
    for name in sorted(_ASK_A_PERSON.intersection(called).difference(bound)):
        yield name, "it waits for input, and a trial has no user"


def stale(value: object, binding: Binding | None, history: History) -> str:
    """Return the reason why a value is stale; "" when it is not.

    Its class was defined again, or its origin has changed.
    """
    kind = type(value)
    if kind.__module__ == history.home and history.values.get(kind.__name__, kind) is not kind:
        return f"an instance of an older {kind.__name__}"
    if binding is None or binding.kind is not BindingKind.OTHER:
        return ""
    for used in sorted(history.names_of(binding).eager - {binding.name}):
        if why := history.changed_since(used, binding.position):
            return f"made before {why}"
    return ""


def mark_rebound(items: Mapping[str, Item], history: History) -> None:
    """Mark data that a captured function was written with, and that a later cell bound again."""
    for item in items.values():
        for name in item.deferred if item.how == "source" else ():
            used = items.get(name)
            if used is None or used.how != "data" or used.stale or not history.last(name, item.position):
                continue
            if why := history.changed_since(name, item.position):
                used.stale = f"{why} after {item.name} ({item.origin})"
