"""The module `__main__`, whose names are those of the notebook, in its several forms."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterable, Iterator

from jupyter_autotrain.capture import looking

MAIN = "__main__"
Known = Callable[[ast.expr], object]
"""Gives the value of an expression where that is known, else None."""


def is_main(node: ast.AST, known: Known) -> bool:
    """Return True for `__main__`, `sys.modules["__main__"]`, `sys.modules[__name__]` and names of the same module."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="modules"), slice=name):
            return _is_name_of_main(name)
        case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"), args=[name]):
            return _is_name_of_main(name)
        case ast.Name():
            value = known(node)
            return looking.is_kind(value, types.ModuleType) and looking.attribute(value, "__name__") == MAIN
    return False


def _is_name_of_main(node: ast.AST) -> bool:
    match node:
        case ast.Name(id="__name__") | ast.Constant(value="__main__"):
            return True
    return False


def names_in(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names that some statements give the module `__main__`."""
    for node in (part for one in statements for part in ast.walk(one)):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.asname or alias.name for alias in aliases if alias.name == MAIN)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_main(value, lambda _: None):
                yield name
