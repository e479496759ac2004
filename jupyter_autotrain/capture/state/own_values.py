"""Plain values at the top of modules beside the notebook that differ from what their file sets."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import LATEST, Item
from jupyter_autotrain.capture.state import own_modules
from jupyter_autotrain.capture.state.effects import Effect
from jupyter_autotrain.capture.state.literals import is_literal_value
from jupyter_autotrain.capture.state.paths import import_text, top
from jupyter_autotrain.capture.state.uses import UsedLibraries
from jupyter_autotrain.capture.syntax.history import is_literal
from jupyter_autotrain.core.credentials import is_credential
from jupyter_autotrain.core.text_format import cut

_SHOWN = 90


def restore_code(effects: Sequence[Effect], uses: UsedLibraries) -> Iterator[tuple[str, Item, Difference]]:
    """The full name of each such value, what sets it again, and the difference.

    Args:
        effects: What the cells did.
        uses: What the trial uses.
    """
    for module in (name for name in uses.own if top(name) in uses.direct):
        last = next((effect for effect in reversed(effects) if effect.path.startswith(f"{module}.")), None)
        for name, value in _changed(module):
            path = f"{module}.{name}"
            label = last.scope.label if last else ""
            if isinstance(value, str | bytes) and is_credential(name, value):
                continue
            position = last.position if last else (LATEST[0] - 1, 0, 0)
            item = Item(f"attribute {path}", "state", _text(import_text(module), name, value), position=position)
            yield path, item, Difference(DifferenceKind.REPLAYED, cut(f"{path} = {value!r}", _SHOWN), label)


def _changed(module: str) -> Iterator[tuple[str, object]]:
    """The names whose one literal at the top of the file is not their value now."""
    read = own_modules.read(module)
    if read is None:
        return
    now = vars(sys.modules[module])
    for node in read[0].body:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and is_literal(node.value)):
            continue
        name = node.targets[0].id
        written = ast.literal_eval(node.value)
        if name in now and _differs(now[name], written) and not _is_used_at_import(name, node, read[0]):
            yield name, now[name]


def _differs(now: object, written: object) -> bool:
    return is_literal_value(now) and (type(now) is not type(written) or now != written)


def _is_used_at_import(name: str, own: ast.stmt, tree: ast.Module) -> bool:
    """Whether other statements at the top of the file touch it: the import alone may have changed it then."""
    others = [node for node in tree.body if node is not own and not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return any(isinstance(part, ast.Name) and part.id == name for node in others for part in ast.walk(node))


def _text(module: str, name: str, value: object) -> str:
    """A list, dict or set is refilled in place: others may refer to it."""
    if isinstance(value, list):
        return f"{module}.{name}[:] = {value!r}"
    if isinstance(value, dict | set):
        return f"{module}.{name}.clear()\n{module}.{name}.update({value!r})"
    return f"{module}.{name} = {value!r}"
