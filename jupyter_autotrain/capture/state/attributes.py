"""Attributes and items that the notebook set on modules, on classes of libraries and on what these hold.

The live value counts: a plain value is written out, a function of the notebook is named.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state import settings
from jupyter_autotrain.capture.state.effects import Effect
from jupyter_autotrain.capture.state.literals import is_literal_value
from jupyter_autotrain.capture.state.paths import path_of_value, text_of
from jupyter_autotrain.capture.state.repeatable import repeatable
from jupyter_autotrain.capture.state.uses import UsedLibraries
from jupyter_autotrain.capture.syntax.history import Position
from jupyter_autotrain.core.credentials import is_credential
from jupyter_autotrain.core.text_format import cut

_ELSEWHERE = ("os.environ", "sys.argv", "sys.path", "sys.ps", "sys.std", "sys.displayhook", "sys.excepthook")
"""What the environment, the trial itself or the shell takes care of."""
_SHOWN = 90


@dataclass(frozen=True, slots=True)
class _Missing:
    """What a path leads to when it leads nowhere."""


def restore_code(
    effects: Sequence[Effect], uses: UsedLibraries, slice_: Slice, written: Sequence[str]
) -> Iterator[tuple[Item | None, Difference]]:
    """What sets such attributes again, and the differences.

    Args:
        effects: What the cells did.
        uses: What the trial uses.
        slice_: The captured names.
        written: Paths that are carried already.
    """
    latest = {effect.path: effect for effect in effects if _is_assignment(effect) and effect.path in uses}
    for path, effect in latest.items():
        if any(path == done or path.startswith((f"{done}.", f"{done}[")) for done in written):
            continue
        value = live(path)
        if isinstance(value, _Missing) or path_of_value(value) == path:
            continue  # deleted, or set back to what it was
        yield _again(path, value, effect, slice_)


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


def _is_assignment(effect: Effect) -> bool:
    if isinstance(effect.target, ast.Call) or effect.path.startswith(_ELSEWHERE) or settings.covers(effect):
        return False
    if "(" in effect.path:
        return False
    return all(isinstance(part.slice, ast.Constant) for part in _subscripts(effect.target))


def _subscripts(target: ast.expr) -> Iterator[ast.Subscript]:
    return (part for part in ast.walk(target) if isinstance(part, ast.Subscript))


def _again(path: str, value: object, effect: Effect, slice_: Slice) -> tuple[Item | None, Difference]:
    label = effect.scope.label
    if isinstance(value, str | bytes) and is_credential(path.rpartition(".")[2], value):
        shown = f"{path}, which looks like a secret: name it under `secrets:` and set it in the cell"
        return None, Difference(DifferenceKind.NOT_CARRIED, shown, label)
    if is_literal_value(value):
        text = f"{text_of(path)} = {value!r}"
        return _item(path, text, effect.position), Difference(
            DifferenceKind.REPLAYED, cut(f"{path} = {value!r}", _SHOWN), label
        )
    if name := slice_.name_of(value):
        item = _item(path, f"{text_of(path)} = {name}", effect.position)
        item.eager = frozenset({name})
        return item, Difference(DifferenceKind.REPLAYED, f"{path} = {name}", label)
    return _as_written(path, effect, slice_)


def _as_written(path: str, effect: Effect, slice_: Slice) -> tuple[Item | None, Difference]:
    """By the text of what was assigned last."""
    label = effect.scope.label
    again = None
    if effect.value is not None and not effect.scope.blocks:
        statement = ast.copy_location(ast.Expr(effect.value), effect.node)
        again = repeatable(statement, effect, slice_)
    if again is None:
        return None, Difference(DifferenceKind.NOT_CARRIED, f"{path}, set here: set it in the cell", label)
    item = _item(path, f"{text_of(path)} = {again.text}", effect.position)
    item.eager = again.names.eager
    item.called = again.names.called
    item.deferred = again.names.deferred
    return item, Difference(DifferenceKind.REPLAYED, cut(f"{path} = {again.text}", _SHOWN), label)


def _item(path: str, text: str, position: Position) -> Item:
    return Item(f"attribute {path}", "state", text, position=position)
