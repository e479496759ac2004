"""Names that both the notebook and the trial have: which of the two a cell means, and how it reaches the other."""

from __future__ import annotations

import ast
import inspect
import os
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from numbers import Number

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.script import TrialScript
from jupyter_autotrain.capture.syntax.scopes import Function, own_names
from jupyter_autotrain.core.spec import MEMBERS, TRIAL, TRIAL_ONLY
from jupyter_autotrain.errors import CaptureError

_OURS = ("jupyter_autotrain.agent.", "IPython.core.display")
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
        """The notebook's meaning of the name, for people."""
        return f"the notebook's ({described(self.value)}{f' from {self.origin}' if self.origin else ''})"


def is_notebooks(name: str, namespace: Mapping[str, object]) -> bool:
    """Tell whether the notebook binds `name` to something other than what the trial has under it."""
    return name in namespace and not str(looking.attribute(namespace[name], "__module__")).startswith(_OURS)


def clash(value: object, origin: str) -> str:
    """Return the meaning of a searched name in the notebook.

    It is "" for a plain value, such as a number, which is the name's default.
    """
    shape = looking.attribute(value, "shape")
    if isinstance(value, _PLAIN) or (isinstance(shape, tuple) and not shape):
        return ""
    return f"{described(value)} in the notebook{f' ({origin})' if origin else ''}"


def described(value: object) -> str:
    """Return the kind of a value, with its article."""
    if isinstance(value, types.ModuleType):
        return "a module"
    if isinstance(value, type):
        return "a class"
    kind = "function" if isinstance(value, types.FunctionType | types.BuiltinFunctionType) else type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def way_to(name: str, *, trial_is_free: bool) -> str:
    """Return the way in which a cell reaches the trial's `name` although the notebook has one."""
    return f"trial.{name}" if trial_is_free and name != TRIAL else f"at.{name}"


def differences(conflicts: Sequence[NameConflict], *, trial_is_free: bool) -> list[Difference]:
    """Return one difference for each name."""
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
    script: TrialScript, conflicts: Sequence[NameConflict], parameters: Collection[str], *, trial_is_free: bool
) -> None:
    """Refuse code that plainly means the trial's name where the notebook's cannot be meant.

    Args:
        script: The script.
        conflicts: The names that stay the notebook's.
        parameters: Names of the search space.
        trial_is_free: Whether `trial` itself is the trial's.

    Raises:
        CaptureError: Such as `report(loss=...)` where `report` is a text.
    """
    attributes = {**_ATTRIBUTES, "params": frozenset(parameters)}
    for one in conflicts:
        known = attributes.get(one.name, frozenset())
        for node in _uses(script.tree, one.name):
            written = ""
            match node:
                case ast.Call(func=ast.Name(id=name)) if name == one.name and name in _CALLED:
                    written = "" if _may_call(one.value, node) else f"calls {name}(...)"
                case ast.Attribute(value=ast.Name(id=name), attr=attr, ctx=ast.Load()) if name == one.name:
                    written = "" if attr not in known or _has(one.value, attr) else f"uses {name}.{attr}"
            if written:
                raise _meant(one, written, script.place(node.lineno), trial_is_free=trial_is_free)


def _meant(one: NameConflict, written: str, where: str, *, trial_is_free: bool) -> CaptureError:
    way = way_to(one.name, trial_is_free=trial_is_free) if one.name != TRIAL else "at.report, at.params, ..."
    imported = " after `import jupyter_autotrain as at`" if way.startswith("at.") else ""
    return CaptureError(
        f"{where[:1].upper()}{where[1:]} {written}, but {one.name} is {one.what}, which cannot do that.",
        "A name that the notebook binds stays the notebook's in a trial.",
        f"Write {way}{imported}, or `del {one.name}` in the notebook.",
    )


def _may_call(value: object, call: ast.Call) -> bool:
    """Tell whether a call fits a value; True where that is not known."""
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


def _uses(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield the expressions of some code in which a name is the global one."""
    if isinstance(node, Function | ast.Lambda) and name in own_names(node):
        return
    if isinstance(node, ast.expr):
        yield node
    for part in ast.iter_child_nodes(node):
        yield from _uses(part, name)
