"""Names that both the notebook and the trial have: which of the two a cell means, and how it reaches the other."""

from __future__ import annotations

import ast
import inspect
import os
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from numbers import Number

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.script import place
from jupyter_autotrain.capture.syntax.scopes import Function, arguments_of, bound_by
from jupyter_autotrain.core.trial_names import MEMBERS, TRIAL, TRIAL_ONLY
from jupyter_autotrain.errors import CaptureError

_OURS = ("jupyter_autotrain.worker.", "IPython.core.display")
_PLAIN = (Number, str, bytes, types.NoneType, list, tuple, dict, set, frozenset, range, os.PathLike, Enum)
_CALLED = frozenset({"display", "report", "should_stop"})
_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "checkpoint": frozenset({"load", "path", "save"}),
    TRIAL: frozenset({*MEMBERS, *TRIAL_ONLY}),
}


@dataclass(frozen=True, slots=True)
class NameConflict:
    """A trial's name that stays the notebook's in this cell.

    Attributes:
        name: The name.
        value: What the notebook binds it to.
        origin: The cell that did, or "".
    """

    name: str
    value: object
    origin: str

    @property
    def what(self) -> str:
        """What the notebook means by it, for people."""
        return f"the notebook's ({described(self.value)}{f' from {self.origin}' if self.origin else ''})"


def is_notebooks(name: str, namespace: Mapping[str, object]) -> bool:
    """Whether the notebook binds `name` to something other than what the trial has under it."""
    return name in namespace and not str(looking.attribute(namespace[name], "__module__")).startswith(_OURS)


def clash(value: object, origin: str) -> str:
    """What the notebook binds a searched name to; "" for a plain value, such as a number: that is its default."""
    shape = looking.attribute(value, "shape")
    if isinstance(value, _PLAIN) or (isinstance(shape, tuple) and not shape):
        return ""
    return f"{described(value)} in the notebook{f' ({origin})' if origin else ''}"


def described(value: object) -> str:
    """The kind of a value, with its article."""
    if isinstance(value, types.ModuleType):
        return "a module"
    if isinstance(value, type):
        return "a class"
    kind = "function" if isinstance(value, types.FunctionType | types.BuiltinFunctionType) else type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def way_to(name: str, *, trial_is_free: bool) -> str:
    """How a cell reaches the trial's `name` although the notebook has one."""
    return f"trial.{name}" if trial_is_free and name != TRIAL else f"at.{name}"


def differences(conflicts: Sequence[NameConflict], *, trial_is_free: bool) -> list[Difference]:
    """One line for each name."""
    return [
        Difference(DifferenceKind.RENAMED, _line(one, trial_is_free=trial_is_free))
        for one in sorted(conflicts, key=lambda one: one.name)
    ]


def _line(one: NameConflict, *, trial_is_free: bool) -> str:
    if one.name == TRIAL:
        return f"trial is {one.what}; the trial's names are at.report, at.params, ... (import jupyter_autotrain as at)"
    imported = "" if trial_is_free else " (import jupyter_autotrain as at)"
    return f"{one.name} is {one.what}; the trial's is {way_to(one.name, trial_is_free=trial_is_free)}{imported}"


def unused(bound: Sequence[str], items: Collection[str], script: str) -> list[Difference]:
    """Report searched names that the cell binds before it reads them: then the search changes nothing.

    Args:
        bound: Searched names that the cell binds.
        items: Names that the script reads before it binds them.
        script: The script, in which literals are overridden already.
    """
    if {"params", TRIAL} & set(items):
        return []
    covered = [name for name in bound if name not in items and f'__autotrain_override__("{name}"' not in script]
    text = "{} is bound by the cell itself, to no literal: the searched value is params.{}"
    return [Difference(DifferenceKind.RENAMED, text.format(name, name)) for name in covered]


def refuse_meant_as_the_trials(
    script: ast.Module,
    source_map: Sequence[str],
    conflicts: Sequence[NameConflict],
    parameters: Collection[str],
    *,
    trial_is_free: bool,
) -> None:
    """Refuse code that plainly means the trial's name where the notebook's cannot be meant.

    Args:
        script: The script.
        source_map: For each of its lines "cell label:line", or "".
        conflicts: The names that stay the notebook's.
        parameters: Names of the search space.
        trial_is_free: Whether `trial` itself is the trial's.

    Raises:
        CaptureError: Such as `report(loss=...)` where `report` is a text.
    """
    attributes = {**_ATTRIBUTES, "params": frozenset(parameters)}
    for one in conflicts:
        uses = _NameUses(one.name)
        uses.visit(script)
        wrong = [call for call in uses.calls if one.name in _CALLED and not _may_call(one.value, call)]
        read = [use for use in uses.attributes if use.attr in attributes.get(one.name, ())]
        wrong_attributes = [use for use in read if not _has(one.value, use.attr)]
        for node in (*wrong, *wrong_attributes):
            written = f"calls {one.name}(...)" if wrong else f"uses {ast.unparse(node)}"
            raise _meant(one, written, place(source_map, node.lineno), trial_is_free=trial_is_free)


def _meant(one: NameConflict, written: str, where: str, *, trial_is_free: bool) -> CaptureError:
    way = way_to(one.name, trial_is_free=trial_is_free) if one.name != TRIAL else "at.report, at.params, ..."
    imported = " after `import jupyter_autotrain as at`" if way.startswith("at.") else ""
    return CaptureError(
        f"{where[:1].upper()}{where[1:]} {written}, but {one.name} is {one.what}, which cannot do that.",
        "A name that the notebook binds stays the notebook's in a trial.",
        f"Write {way}{imported}, or `del {one.name}` in the notebook.",
    )


def _may_call(value: object, call: ast.Call) -> bool:
    """Whether a call fits a value; True where that is not known."""
    if not callable(value):
        return False
    unknown = any(isinstance(part, ast.Starred) for part in call.args)
    named = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
    if unknown or len(named) < len(call.keywords):
        return True
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*call.args, **dict.fromkeys(named))
    except TypeError:
        return False
    return True


def _has(value: object, attribute: str) -> bool:
    try:
        return hasattr(value, attribute)
    except Exception:  # noqa: BLE001 - the value is the user's, and so is its __getattr__
        return True


class _NameUses(ast.NodeVisitor):
    """The calls and attributes of one global name.

    Args:
        name: The name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[ast.Call] = []
        self.attributes: list[ast.Attribute] = []

    def visit_FunctionDef(self, node: Function | ast.Lambda) -> None:
        """Leave out functions that bind the name themselves."""
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        if self.name not in arguments_of(node) | bound_by(body):
            self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """As any function."""
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """As any function."""
        self.visit_FunctionDef(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Keep calls of the name."""
        if isinstance(node.func, ast.Name) and node.func.id == self.name:
            self.calls.append(node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Keep attributes of the name that are read."""
        if isinstance(node.value, ast.Name) and node.value.id == self.name and isinstance(node.ctx, ast.Load):
            self.attributes.append(node)
        self.generic_visit(node)
