"""Attributes and items that were set on modules, on classes of libraries and on what these hold.

Where to look says the cells' text (see `effects`), what libraries hold of the notebook (`patches`), and what modules
beside the notebook hold (`own_values`). What counts is the live value: a plain one is written out, a definition of the
notebook is named, an expression that gives it again is copied, all else travels as data.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import LATEST, Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state import own_values, patches, settings
from jupyter_autotrain.capture.state.effects import Effect
from jupyter_autotrain.capture.state.literals import is_literal_value
from jupyter_autotrain.capture.state.paths import path_of_value, text_of
from jupyter_autotrain.capture.state.repeatable import repeatable
from jupyter_autotrain.capture.state.uses import UsedLibraries
from jupyter_autotrain.capture.syntax.history import Position
from jupyter_autotrain.capture.values import unpicklable
from jupyter_autotrain.core.credentials import is_credential
from jupyter_autotrain.core.text_format import cut

_ELSEWHERE = ("os.environ", "sys.argv", "sys.path", "sys.ps", "sys.std", "sys.displayhook", "sys.excepthook")
"""What the environment, the trial itself or the shell takes care of."""
_SHOWN = 90
_MOST_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class _Missing:
    """What a path leads to when it leads nowhere."""


@dataclass(frozen=True, slots=True)
class _Change:
    """An attribute or item to be set again.

    Attributes:
        path: Its full name.
        value: What it is now.
        label: The cell that set it, as far as is known.
        position: When.
        effect: The statement that set it; None where only the value is known.
        form: How `{p}` gets the value `{v}`.
    """

    path: str
    value: object
    label: str = ""
    position: Position = (LATEST[0] - 1, 0, 0)
    effect: Effect | None = None
    form: str = "{p} = {v}"


def restore(effects: Sequence[Effect], uses: UsedLibraries, slice_: Slice) -> list[str]:
    """Set such attributes again, and report it; gives the full names of those of modules beside the notebook.

    Args:
        effects: What the cells did.
        uses: What the trial uses.
        slice_: The captured names.
    """
    own = [_of_own_module(held, effects) for held in own_values.find(uses, slice_.home)]
    paths = [change.path for change in own]
    options = settings.options_of_pandas() if uses.reaches("pandas") else ()
    put_on = [_Change(path, value) for path, value in (*options, *patches.find(uses, slice_.namespace))]
    if uses.reaches("numpy") and "numpy" in sys.modules:
        put_on += [_Change(path, value, form=form) for path, value, form in settings.functions_of_numpy()]
    done = set[tuple[int | str, str]]()
    for change in (*own, *_by_text(effects, uses, paths), *put_on):
        owner, _, name = change.path.rpartition(".")
        holder = live(owner)
        # A class has several full names; what else holds attributes may be another object each time.
        place = (id(holder) if isinstance(holder, type | ModuleType) else owner, name)
        if place not in done:
            done.add(place)
            _set_again(change, slice_)
    slice_.differences += _unknown_items(effects, uses, paths)
    return paths


def live(path: str) -> object:
    """What a full name leads to now; `_Missing` when it leads nowhere."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is not None:
            break
    else:
        return _Missing()
    try:
        return eval(f"_{path[len('.'.join(parts[:length])) :]}", {"__builtins__": {}, "_": module})  # noqa: S307 - a name, as a cell wrote it
    except Exception:  # noqa: BLE001 - attributes of any library may raise anything
        return _Missing()


def _of_own_module(held: own_values.HeldValue, effects: Sequence[Effect]) -> _Change:
    last = next((effect for effect in reversed(effects) if effect.path.startswith(f"{held.module}.")), None)
    return _Change(held.path, held.value, last.scope.label if last else "", form=held.form)


def _by_text(effects: Sequence[Effect], uses: UsedLibraries, done: Sequence[str]) -> Iterator[_Change]:
    """What cells assigned, as far as their text shows to what."""
    latest = {effect.path: effect for effect in effects if _is_assignment(effect) and effect.path in uses}
    for path, effect in latest.items():
        if any(path == other or path.startswith((f"{other}.", f"{other}[")) for other in done):
            continue
        value = live(path)
        if isinstance(value, _Missing) or path_of_value(value) == path:
            continue  # deleted, or set back to what it was
        yield _Change(path, value, effect.scope.label, effect.position, effect)


def _unknown_items(effects: Sequence[Effect], uses: UsedLibraries, done: Sequence[str]) -> Iterator[Difference]:
    """What was set under a key that is not written there."""
    set_ = [effect for effect in effects if _is_set(effect) and effect.path in uses and not _has_known_items(effect)]
    for effect in {effect.path: effect for effect in set_ if not effect.path.startswith(tuple(done))}.values():
        text = cut(ast.unparse(effect.target), _SHOWN)
        yield Difference(DifferenceKind.NOT_CARRIED, f"{text}: set it in the cell", effect.scope.label)


def _is_assignment(effect: Effect) -> bool:
    return _is_set(effect) and _has_known_items(effect)


def _is_set(effect: Effect) -> bool:
    if isinstance(effect.target, ast.Call) or effect.path.startswith(_ELSEWHERE) or settings.covers(effect):
        return False
    return "(" not in effect.path


def _has_known_items(effect: Effect) -> bool:
    subscripts = [part for part in ast.walk(effect.target) if isinstance(part, ast.Subscript)]
    return all(isinstance(part.slice, ast.Constant) for part in subscripts)


def _set_again(change: _Change, slice_: Slice) -> None:
    """Take in the statement that sets an attribute, and report it; or report why there is none."""
    value = change.value
    item = Item(f"attribute {change.path}", "state", position=change.position)
    if isinstance(value, str | bytes) and is_credential(change.path.rpartition(".")[2], value):
        why = "which looks like a secret: name it under `secrets:` and set it in the cell"
        _report(change, slice_, DifferenceKind.NOT_CARRIED, f", {why}")
        return
    expression = shown = _expression(change, item, slice_)
    if not expression:
        why, expression = _take_data(change, item, slice_)
        shown = "its value here"
    if not expression:
        _report(change, slice_, DifferenceKind.NOT_CARRIED, f", {why}: set it in the cell")
        return
    item.text = change.form.replace("{p}", text_of(change.path)).replace("{v}", expression)
    slice_.take(item)
    _report(change, slice_, DifferenceKind.REPLAYED, f" = {shown}")


def _report(change: _Change, slice_: Slice, kind: DifferenceKind, text: str) -> None:
    slice_.differences.append(Difference(kind, cut(change.path + text, _SHOWN), change.label))


def _expression(change: _Change, item: Item, slice_: Slice) -> str:
    """An expression that gives the value, and in the item what it needs; "" when there is none."""
    if is_literal_value(change.value) and not _is_shared(change.value, slice_):
        return repr(change.value)
    if name := slice_.name_of(change.value):
        item.eager = frozenset({name.partition(".")[0]})
        return name
    effect = change.effect
    if effect is None or effect.value is None or effect.scope.blocks:
        return ""
    again = repeatable(ast.copy_location(ast.Expr(effect.value), effect.node), effect, slice_)
    if again is None:
        return ""
    item.eager = again.names.eager
    item.called = again.names.called
    item.deferred = again.names.deferred
    return again.text


def _is_shared(value: object, slice_: Slice) -> bool:
    """Whether a list, dictionary or set, or one inside, is a variable of the notebook too."""
    if not isinstance(value, list | dict | set):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return any(value is other for other in slice_.namespace.values()) or any(_is_shared(one, slice_) for one in inner)


def _take_data(change: _Change, item: Item, slice_: Slice) -> tuple[str, str]:
    """Why a value cannot travel, or ""; and the name under which it travels, or ""."""
    if type(change.value).__module__ == "unittest.mock":
        return "a mock that was started here", ""
    if why := next((why for _, why in unpicklable.find(change.path, change.value)), ""):
        return why, ""
    name = f"__{re.sub('[^a-zA-Z0-9]+', '_', change.path)}__"
    slice_.attributes[name] = change.value
    slice_.take(Item(name, "data", origin=change.path, position=change.position))
    if why := slice_.values.forget_refused(name, _MOST_BYTES):
        del slice_.items[name]
        return why, ""
    item.eager = frozenset({name})
    return "", name
