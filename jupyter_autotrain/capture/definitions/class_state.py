"""What a class has now that its statement would not give it: attributes set, replaced or deleted since."""

from __future__ import annotations

import ast
import dataclasses
import enum
from abc import ABCMeta
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import singledispatchmethod
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.definitions.reproducible import (
    StatementContext,
    decorated_state,
    evaluates_to,
    function_state,
    is_atomic,
    is_sole_owner,
    same_text,
)
from jupyter_autotrain.capture.syntax.codes import functions_in
from jupyter_autotrain.capture.syntax.scopes import Function, bound_by

DELETED = object()
"""Stands for an attribute that the class no longer has."""
_MADE_BY_PYTHON = frozenset({
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__dict__",
    "__doc__", "__firstlineno__", "__module__", "__orig_bases__", "__parameters__", "__qualname__",
    "__slotnames__", "__static_attributes__", "__type_params__", "__weakref__", "_abc_impl",
})  # fmt: skip
_WRAPPED_BY_PYTHON = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})
_SLOTS = (MemberDescriptorType, GetSetDescriptorType)
_PLAIN = (list, dict, set, frozenset, tuple)


@dataclass(frozen=True, slots=True)
class _ClassMember:
    """How a class body binds one name: by the last of its statements that does, and by how many."""

    node: ast.stmt
    value: ast.expr | None
    certain: bool


def class_state(path: str, cls: type, node: ast.ClassDef, scope: StatementContext) -> Iterator[tuple[str, object]]:
    """Each attribute that the statement alone does not give: (how to reach it, its value or `DELETED`).

    Args:
        path: The name of the class in the script.
        cls: The class as it is now.
        node: Its statement.
        scope: What the statement's names mean.
    """
    inside = replace(scope, own=vars(cls))
    members = _members(node, cls)
    for name in list(vars(cls)):
        member = members.get(name)
        if name in _MADE_BY_PYTHON or looking.is_kind(vars(cls)[name], _SLOTS):
            continue
        if member is None:
            yield from _added(path, cls, name, node, inside)
        else:
            yield from _bound(path, cls, name, member, inside)
    if isinstance(cls, enum.EnumMeta):
        yield from _of_members(path, cls)
    yield from ((f"{path}.{name}", DELETED) for name in _deleted(cls, node, members))
    if not same_text(vars(cls).get("__doc__"), ast.get_docstring(node, clean=False)) and not node.decorator_list:
        yield f"{path}.__doc__", vars(cls).get("__doc__")


def _of_members(path: str, cls: enum.EnumMeta) -> Iterator[tuple[str, object]]:
    """Yield the attributes that were set on the members of an enum, whose class sets none itself."""
    if "__init__" in vars(cls) or "__new_member__" in vars(cls):
        return
    members: Mapping[str, enum.Enum] = cls.__members__
    for name, member in members.items():
        attributes = {key: value for key, value in vars(member).items() if not key.startswith("_")}
        yield from ((f"{path}.{name}.{key}", value) for key, value in attributes.items())


def is_generated(cls: type, node: ast.ClassDef) -> bool:
    """True when something besides the statement may add attributes: a decorator, a metaclass, a library's hook."""
    hooks = any("__init_subclass__" in vars(base) for base in cls.__mro__[1:-1])
    fields = issubclass(cls, tuple) and hasattr(cls, "_fields")
    return bool(node.decorator_list or node.keywords) or type(cls) not in {type, ABCMeta} or hooks or fields


def _members(node: ast.ClassDef, cls: type) -> dict[str, _ClassMember]:
    """How the body binds each name, private ones under the name that the class has for them."""
    members: dict[str, _ClassMember] = {}
    for statement in node.body:
        for name in bound_by([statement]):
            key = f"_{cls.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            members[key] = _ClassMember(statement, _value_for(statement), isinstance(statement, _CERTAIN))
    return {key: m for key, m in members.items() if not isinstance(m.node, ast.Delete)}


_CERTAIN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


def _value_for(statement: ast.stmt) -> ast.expr | None:
    """The expression that a statement sets names to, where it is as simple as that."""
    if isinstance(statement, ast.AnnAssign):
        return statement.value
    if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
        return statement.value
    return None


def _added(
    path: str, cls: type, name: str, node: ast.ClassDef, scope: StatementContext
) -> Iterator[tuple[str, object]]:
    """An attribute that the body does not mention."""
    value = vars(cls)[name]
    if name == "__hash__" and value is None:
        return
    if is_generated(cls, node) and not _is_users(value, cls, scope):
        hidden = name.startswith("_") or isinstance(cls, enum.EnumMeta)
        if hidden or not (is_atomic(value) or isinstance(value, _PLAIN)):
            return
    yield f"{path}.{name}", value


def _is_users(value: object, cls: type, scope: StatementContext) -> bool:
    """Whether a function of the notebook was put here; generated methods are named after the class."""
    own = f"{cls.__qualname__}."
    return any(not function.__qualname__.startswith(own) for function in functions_in(value, scope.namespace))


def _bound(
    path: str, cls: type, name: str, member: _ClassMember, scope: StatementContext
) -> Iterator[tuple[str, object]]:
    """An attribute that the body binds: a method, a nested class or a value."""
    alone = is_sole_owner(vars(cls), name)
    value = vars(cls)[name]
    here = f"{path}.{name}"
    if isinstance(value, singledispatchmethod) and not _is_registered_inside(value, path):
        yield here, value
    elif isinstance(member.node, Function):
        yield from _method(here, value, member.node, scope)
    elif isinstance(member.node, ast.ClassDef) and isinstance(value, type):
        if value.__qualname__ == f"{cls.__qualname__}.{name}":
            yield from class_state(here, value, member.node, scope)
        else:
            yield here, value
    elif not _is_from_body(value, name, member, cls, scope, alone=alone):
        yield here, value


def _is_registered_inside(method: singledispatchmethod[object], path: str) -> bool:
    """Whether all implementations were written in the class statement."""
    registered = method.dispatcher.registry.values()
    return all(str(looking.attribute(one, "__qualname__")).startswith(f"{path}.") for one in registered)


def _method(here: str, value: object, node: Function, scope: StatementContext) -> Iterator[tuple[str, object]]:
    if not node.decorator_list:
        plain = getattr(value, "__func__", value) if node.name in _WRAPPED_BY_PYTHON else value
        if scope.made(plain):
            yield from function_state(here, plain, node, scope)
        else:
            yield here, value
        return
    inner = list(functions_in(value, scope.namespace))
    known = [function for function in inner if scope.made(function)]
    if inner and not known:
        yield here, value
    elif isinstance(value, property):
        if len(known) < len(inner):
            yield here, value
    elif isinstance(value, staticmethod | classmethod):
        if not known or len(known) < len(inner) or any(function_state(here, known[0], node, scope)):
            yield here, value
    elif isinstance(value, FunctionType) and value in known:
        yield from decorated_state(here, value, node, scope)
    elif any(any(decorated_state(here, function, node, scope)) for function in known if function.__name__ == node.name):
        yield here, value


def _is_from_body(
    value: object, name: str, member: _ClassMember, cls: type, scope: StatementContext, *, alone: bool
) -> bool:
    """Whether the body gives this very value again, or one that cannot be distinguished from it."""
    if isinstance(cls, enum.EnumMeta) and (isinstance(value, enum.Enum) or name.startswith("_")):
        return True
    if member.value is not None and evaluates_to(member.value, value, scope, alone=alone):
        return True
    if isinstance(value, FunctionType | property | staticmethod | classmethod):
        functions = list(functions_in(value, scope.namespace))
        return bool(functions) and all(scope.made(f) and not vars(f) and not f.__defaults__ for f in functions)
    if isinstance(value, ModuleType) or (dataclasses.is_dataclass(cls) and _default(cls, name) is value):
        return True
    is_library_made = type(cls) not in {type, ABCMeta} and type(cls).__module__ != scope.namespace.get("__name__")
    return (is_library_made or _is_field(cls, name)) and not (is_atomic(value) or isinstance(value, _PLAIN))


def _default(cls: type, name: str) -> object:
    """What a dataclass puts under the name of a field."""
    fields = {field.name: field.default for field in dataclasses.fields(cls)}
    return fields.get(name, DELETED)


def _is_field(cls: type, name: str) -> bool:
    return issubclass(cls, tuple) and name in getattr(cls, "_fields", ())


def _deleted(cls: type, node: ast.ClassDef, members: Mapping[str, _ClassMember]) -> list[str]:
    gone = [name for name, member in members.items() if name not in vars(cls) and member.certain]
    methods = [name for name in gone if isinstance(members[name].node, Function)]
    bare = {name for name in gone if isinstance(members[name].node, ast.AnnAssign) and members[name].value is None}
    if is_generated(cls, node):
        return [] if issubclass(cls, tuple) or isinstance(cls, enum.EnumMeta) else methods
    return [name for name in gone if name not in bare]
