"""A judgment on live functions and classes: those that their statement would give again as they are now.

A definition of which something else is live (an attribute set, replaced or deleted since, a default that calls have
filled) travels by value, with all that it has now.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import sys
from abc import ABCMeta
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import singledispatchmethod
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.syntax.codes import functions_in, has_globals, is_among
from jupyter_autotrain.capture.syntax.history import is_literal
from jupyter_autotrain.capture.syntax.scopes import Function, bound_by

_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
_UNKNOWN = object()
_MADE_BY_PYTHON = frozenset({
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__dict__",
    "__doc__", "__firstlineno__", "__hash__", "__isabstractmethod__", "__module__", "__orig_bases__", "__parameters__",
    "__qualname__", "__slotnames__", "__static_attributes__", "__type_params__", "__weakref__", "_abc_impl",
})  # fmt: skip
_WRAPPED_BY_PYTHON = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})
_SLOTS = (MemberDescriptorType, GetSetDescriptorType)
_PLAIN = (list, dict, set, frozenset, tuple)
_PLAIN_TYPES = (type, ABCMeta)


@dataclass(frozen=True, slots=True)
class StatementContext:
    """The meaning of the names in an expression, and the code that its statement compiles to.

    Attributes:
        namespace: The notebook's globals.
        codes: The code objects of the statement.
        own: What the class body around it has bound, or nothing.
    """

    namespace: Mapping[str, object]
    codes: Collection[CodeType]
    own: Mapping[str, object]

    def made(self, value: object) -> bool:
        """Tell whether a function is one that the statement makes, with the notebook's globals."""
        if not isinstance(value, FunctionType) or not has_globals(value, self.namespace):
            return False
        return is_among(value.__code__, self.codes)

    def lookup(self, name: str) -> object:
        """Return the meaning of a name in the statement."""
        for names in (self.own, self.namespace, vars(builtins)):
            if name in names:
                return names[name]
        return _UNKNOWN


def is_atomic(value: object) -> bool:
    """Tell whether a value is a number, text or a tuple of them, so that a copy is as good as the value."""
    if type(value) is tuple:
        return all(map(is_atomic, value))
    return type(value) in _ATOMS


# Functions


def is_function_unchanged(live: object, node: ast.Lambda | Function, scope: StatementContext) -> bool:
    """Tell whether a function holds nothing besides its code that its statement would not give it."""
    if not isinstance(live, FunctionType):
        return True
    if not _has_defaults(live, node.args, scope):
        return False
    own = [name for name in vars(live) if name not in _MADE_BY_PYTHON]
    if isinstance(node, ast.Lambda):
        return not own
    if node.decorator_list:  # a decorator gives it a name, a documentation and private attributes
        return all(name.startswith("_") for name in own)
    return not own and live.__name__ == node.name and _is_text(live.__doc__, ast.get_docstring(node, clean=False))


def _is_text(live: object, written: str | None) -> bool:
    """Tell whether two documentations are the same; newer compilers take the indentation off."""
    if not isinstance(live, str) or written is None:
        return live is written
    return live.split() == written.split()


def _has_defaults(live: FunctionType, written: ast.arguments, scope: StatementContext) -> bool:
    """Tell whether a function has the defaults that its statement gives it."""
    keywords = list(filter(None, written.kw_defaults))
    if not _are_defaults(written.defaults, live.__defaults__ or (), scope):
        return False
    return _are_defaults(keywords, tuple((live.__kwdefaults__ or {}).values()), scope)


def _are_defaults(written: list[ast.expr], live: tuple[object, ...], scope: StatementContext) -> bool:
    if len(written) != len(live):
        return False
    for index, node in enumerate(written):
        alone = sys.getrefcount(live[index]) <= _SOLE_REFERENCES
        if not _evaluates_to(node, live[index], scope, alone=alone):
            return False
    return True


def _references(holder: tuple[object, ...]) -> int:
    return sys.getrefcount(holder[0])


_SOLE_REFERENCES = _references(([],))


def _evaluates_to(node: ast.expr, live: object, scope: StatementContext, *, alone: bool) -> bool:
    """Tell whether an expression is sure to give the live value; `alone` when nothing else refers to that."""
    if isinstance(node, ast.Lambda):
        return scope.made(live) and is_function_unchanged(live, node, scope)
    if isinstance(node, ast.Tuple) and type(live) is tuple and len(live) == len(node.elts):
        pairs = zip(node.elts, live, strict=True)
        return all(_evaluates_to(part, one, scope, alone=False) for part, one in pairs)
    written = _evaluated(node, scope)
    if written is live or (is_atomic(live) and _is_repeated(written, live)):
        return True
    return alone and is_literal(node) and _is_same_container(written, live)


def _is_repeated(written: object, live: object) -> bool:
    return type(written) is type(live) and repr(written) == repr(live)


def _evaluated(node: ast.expr, scope: StatementContext) -> object:
    """Return what a literal or a dotted name means; attributes are read of modules and classes only."""
    if is_literal(node):
        return ast.literal_eval(node)
    if isinstance(node, ast.Name):
        return scope.lookup(node.id)
    owner = _evaluated(node.value, scope) if isinstance(node, ast.Attribute) else None
    return getattr(owner, node.attr, _UNKNOWN) if isinstance(owner, ModuleType | type) else _UNKNOWN  # type: ignore[attr-defined]  # an attribute


def _is_same_container(written: object, live: object) -> bool:
    """Tell whether two containers hold the same numbers and texts, in the same order."""
    if type(written) is not type(live) or not isinstance(live, list | dict | set):
        return False
    is_flat = all(map(is_atomic, live.values() if isinstance(live, dict) else live))
    return is_flat and (written == live if isinstance(live, set) else _is_repeated(written, live))


# Classes


def is_class_unchanged(cls: type, node: ast.ClassDef, scope: StatementContext) -> bool:
    """Tell whether a class has all that its statement gives it, and nothing else."""
    inside = replace(scope, own=vars(cls))
    members = _members(node, cls)
    generated = _is_generated(cls, node)
    for name in list(vars(cls)):
        alone = sys.getrefcount(vars(cls)[name]) <= _SOLE_REFERENCES
        if name in _MADE_BY_PYTHON or looking.is_kind(vars(cls)[name], _SLOTS):
            continue
        if name not in members and not (generated and _is_generated_member(cls, name, scope)):
            return False
        if name in members and not _is_from_body(cls, name, members[name], inside, alone=alone):
            return False
    if any(_is_gone(cls, name, member, generated=generated) for name, member in members.items()):
        return False
    if isinstance(cls, enum.EnumMeta) and any(set_on_members(cls)):
        return False
    return generated or _is_text(vars(cls).get("__doc__"), ast.get_docstring(node, clean=False))


def _members(node: ast.ClassDef, cls: type) -> dict[str, ast.stmt]:
    """Return the last statement of the body that binds each name; a private name as the class has it."""
    members: dict[str, ast.stmt] = {}
    for statement in node.body:
        for name in bound_by([statement]):
            is_private = name.startswith("__") and not name.endswith("__")
            members[f"_{cls.__name__.lstrip('_')}{name}" if is_private else name] = statement
    return {key: one for key, one in members.items() if not isinstance(one, ast.Delete)}


def _is_generated(cls: type, node: ast.ClassDef) -> bool:
    """Tell whether something besides the statement may add attributes: a decorator, a metaclass or a library's hook."""
    hooks = any("__init_subclass__" in vars(base) for base in cls.__mro__[1:-1])
    fields = issubclass(cls, tuple) and hasattr(cls, "_fields")
    return bool(node.decorator_list or node.keywords) or type(cls) not in _PLAIN_TYPES or hooks or fields


def _is_generated_member(cls: type, name: str, scope: StatementContext) -> bool:
    """Tell whether a decorator or a metaclass has made an attribute, and not a cell since."""
    value = vars(cls)[name]
    own = (f"{cls.__qualname__}.", "__create_fn__.")  # how methods that dataclasses and metaclasses make are named
    if any(not function.__qualname__.startswith(own) for function in functions_in(value, scope.namespace)):
        return False
    is_hidden = name.startswith("_") or isinstance(cls, enum.EnumMeta)
    return is_hidden or not (is_atomic(value) or (isinstance(value, _PLAIN) and value))


def set_on_members(cls: enum.EnumMeta) -> Iterator[str]:
    """Yield the attributes that were set on the members of an enum, whose class sets none itself."""
    members: Mapping[str, enum.Enum] = cls.__members__
    if "__init__" not in vars(cls) and "__new_member__" not in vars(cls):
        for name, member in members.items():
            for key in vars(member):
                if not key.startswith("_"):
                    yield f"{cls.__name__}.{name}.{key}"


def _is_gone(cls: type, name: str, node: ast.stmt, *, generated: bool) -> bool:
    """Tell whether a class no longer has what a statement of its body bound."""
    is_bare = isinstance(node, ast.AnnAssign) and node.value is None
    is_certain = isinstance(node, Function | ast.ClassDef | ast.Assign | ast.AnnAssign)
    if name in vars(cls) or is_bare or not is_certain:
        return False
    takes = issubclass(cls, tuple) or isinstance(cls, enum.EnumMeta)
    return not generated or (isinstance(node, Function) and not takes)


def _is_from_body(cls: type, name: str, node: ast.stmt, scope: StatementContext, *, alone: bool) -> bool:
    """Tell whether the body gives this very value again, or one that cannot be distinguished from it."""
    value = vars(cls)[name]
    if isinstance(value, singledispatchmethod):
        return all(_is_written_in(cls, one) for one in value.dispatcher.registry.values())
    if isinstance(node, Function):
        return _is_method_unchanged(value, node, scope)
    if isinstance(node, ast.ClassDef):
        is_own = isinstance(value, type) and value.__qualname__ == f"{cls.__qualname__}.{name}"
        return is_own and is_class_unchanged(value, node, scope)
    return _is_value_from_body(cls, name, node, scope, alone=alone)


def _is_written_in(cls: type, one: object) -> bool:
    return str(looking.attribute(one, "__qualname__")).startswith(f"{cls.__qualname__}.")


def _is_method_unchanged(value: object, node: Function, scope: StatementContext) -> bool:
    if not node.decorator_list:
        plain = getattr(value, "__func__", value) if node.name in _WRAPPED_BY_PYTHON else value
        return scope.made(plain) and is_function_unchanged(plain, node, scope)
    functions = list(functions_in(value, scope.namespace))
    known = list(filter(scope.made, functions))
    is_whole = isinstance(value, property | staticmethod | classmethod)
    if (is_whole and len(known) < len(functions)) or (functions and not known):
        return False
    return all(is_function_unchanged(one, node, scope) for one in known if one.__name__ == node.name)


def _is_value_from_body(cls: type, name: str, node: ast.stmt, scope: StatementContext, *, alone: bool) -> bool:
    value = vars(cls)[name]
    written = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if isinstance(cls, enum.EnumMeta) and (isinstance(value, enum.Enum) or name.startswith("_")):
        return True
    if written is not None and _evaluates_to(written, value, scope, alone=alone):
        return True
    if isinstance(value, FunctionType | property | staticmethod | classmethod):
        return _holds_own_functions(value, scope)
    if isinstance(written, ast.Call) and looking.is_kind(value, looking.LOCKS):
        return True
    return isinstance(value, ModuleType) or _is_made_by_library(cls, name, scope)


def _holds_own_functions(value: object, scope: StatementContext) -> bool:
    """Tell whether all functions in a value are plain ones that the statement makes."""
    functions = list(functions_in(value, scope.namespace))
    return bool(functions) and all(scope.made(f) and not vars(f) and not f.__defaults__ for f in functions)


def _is_made_by_library(cls: type, name: str, scope: StatementContext) -> bool:
    """Tell whether a dataclass, a named tuple or the metaclass of a library has put a value there."""
    value = vars(cls)[name]
    if dataclasses.is_dataclass(cls) and _default(cls, name) is value:
        return True
    is_field = issubclass(cls, tuple) and name in getattr(cls, "_fields", ())
    has_maker = type(cls) not in _PLAIN_TYPES and type(cls).__module__ != scope.namespace.get("__name__")
    return (has_maker or is_field) and not (is_atomic(value) or isinstance(value, _PLAIN))


def _default(cls: type, name: str) -> object:
    """Return the value that a dataclass puts under the name of a field."""
    fields = {field.name: field.default for field in dataclasses.fields(cls)}
    return fields.get(name, _UNKNOWN)
