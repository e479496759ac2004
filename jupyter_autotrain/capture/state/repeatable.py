"""Which statements can run again in a trial: those that need only what is written out, imported or unchanged."""

from __future__ import annotations

import ast
import builtins
import copy
import logging
from collections.abc import Collection
from dataclasses import dataclass

from jupyter_autotrain.capture.definitions import sources
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state.effects import Effect, StatementScope
from jupyter_autotrain.capture.state.literals import is_literal_value
from jupyter_autotrain.capture.state.paths import path_of, text_of
from jupyter_autotrain.capture.syntax.history import BindingKind, Position
from jupyter_autotrain.capture.syntax.names import Names, analyse
from jupyter_autotrain.capture.syntax.scopes import bound_by

_HARMLESS_BUILTINS = frozenset({
    "bool", "classmethod", "dict", "float", "hasattr", "int", "isinstance", "len", "list", "property", "range", "set",
    "staticmethod", "str", "tuple", "type",
})  # fmt: skip
_HARMLESS = ("logging.Formatter", "logging.getLogger", "os.getcwd", "os.path.", "pathlib.Path", "torch.device")
_ASKS = ("torch.cuda.device_count", "torch.cuda.is_available", "torch.backends.mps.is_available")
_ACTS = (
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
    ast.NamedExpr,
    ast.Global,
    ast.Nonlocal,
    ast.Return,
    ast.Raise,
    ast.ClassDef,
    ast.FunctionDef,
)


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A statement that can run again.

    Attributes:
        text: Its text; what a function imports for itself is imported there.
        names: The names that it needs.
    """

    text: str
    names: Names


def repeatable(
    node: ast.stmt, effect: Effect, slice_: Slice, calls: Collection[ast.expr] = (), text: str = ""
) -> Repeatable | None:
    """A statement as something that can run again; None when it cannot.

    Args:
        node: The statement.
        effect: What it does, and where it is.
        slice_: The captured names.
        calls: The calls in it that are meant to be made again.
        text: Its text, if it is at the left margin of a cell.
    """
    scope = effect.scope
    if not all(_is_harmless(part, scope, calls) for part in ast.walk(node)):
        return None
    if scope.in_function:
        node = ast.fix_missing_locations(_FullNames(scope).visit(copy.deepcopy(node)))
    names = analyse([node])
    needed = {name for name in names.needed if not _is_builtin(name, slice_)}
    if scope.in_function and ((scope.own & needed) or (scope.module and needed)):
        return None
    if not all(_is_at_hand(name, effect.position, slice_) for name in needed):
        return None
    return Repeatable(text if text and not scope.in_function else ast.unparse(node), names)


class _FullNames(ast.NodeTransformer):
    """Names of imported things, as what does not depend on names."""

    def __init__(self, scope: StatementScope) -> None:
        self.aliases = scope.aliases

    def visit_Name(self, node: ast.Name) -> ast.expr:
        path = self.aliases.get(node.id, "")
        return ast.parse(text_of(path), mode="eval").body if path and "(" not in path and "[" not in path else node


def _is_harmless(part: ast.AST, scope: StatementScope, calls: Collection[ast.expr]) -> bool:
    if isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return not bound_by([part])
    if not isinstance(part, ast.Call):
        return not isinstance(part, _ACTS)
    if part in calls or (isinstance(part.func, ast.Name) and part.func.id in _HARMLESS_BUILTINS):
        return True
    if isinstance(part.func, ast.Attribute) and isinstance(part.func.value, ast.Constant):
        return True  # a method of a text
    return path_of(part.func, scope.aliases).startswith((*_HARMLESS, *_ASKS))


def _is_builtin(name: str, slice_: Slice) -> bool:
    return name not in slice_.namespace and hasattr(builtins, name)


def _is_at_hand(name: str, position: Position, slice_: Slice) -> bool:
    """Whether a name means in a trial what it meant when the statement ran."""
    if name not in slice_.namespace or name in slice_.parameters:
        return False
    value = slice_.namespace[name]
    last = slice_.history.last(name)
    if last is not None and last.kind is BindingKind.IMPORT:
        return True
    if slice_.history.changed_since(name, position):
        return False
    return (
        sources.is_definition(value, slice_.home)
        or is_literal_value(value)
        or isinstance(value, logging.Logger)
        or (last is not None and last.kind in {BindingKind.DEFINITION, BindingKind.LAMBDA})
    )
