"""Definitions that a decorator has registered at a library, such as an accessor of pandas: no code need name them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.state import uses
from jupyter_autotrain.capture.state.effects import Effect
from jupyter_autotrain.capture.syntax.scopes import Function

_REGISTERS = re.compile(r"register|custom_op|impl|overload")


def include(effects: Iterable[Effect], slice_: Slice, code: ast.Module) -> None:
    """Take in the functions and classes that a decorator has registered at a library that the trial uses.

    Args:
        effects: What the cells did.
        slice_: The captured names.
        code: The cell's code.
    """
    registered = [effect for effect in effects if _is_registration(effect)]
    if not registered:
        return
    trees = [code, *(ast.parse(item.text) for item in slice_.items.values() if item.how in {"import", "source"})]
    used = uses.of(trees, [slice_.values.modules])
    for effect in registered:
        name = str(getattr(effect.node, "name", ""))
        if effect.path not in used:
            continue
        slice_.include([name])
        if name in slice_.items and slice_.items[name].how != "source":  # no decorator is run again
            text = f"{ast.unparse(effect.target)} of {name}: register it in the cell"
            slice_.differences.append(Difference(DifferenceKind.NOT_CARRIED, text, effect.scope.label))


def _is_registration(effect: Effect) -> bool:
    node = effect.node
    if effect.scope.in_function or not isinstance(node, Function | ast.ClassDef):
        return False
    return effect.target in node.decorator_list and bool(_REGISTERS.match(effect.path.rpartition(".")[2]))
