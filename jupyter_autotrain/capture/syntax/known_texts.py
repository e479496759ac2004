"""The value of an expression, where its text and the notebook's variables determine it."""

from __future__ import annotations

import ast
from collections.abc import Callable


def value_of(node: ast.expr, named: Callable[[str], object]) -> object:
    """The value of a literal, a known name or an item of one, or of texts put together; None where it is not known."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return named(name)
        case ast.Subscript(value=owner, slice=ast.Constant(value=key)):
            held = value_of(owner, named)
            return held.get(key) if type(held) is dict else None
    return _text_of(node, named)


def _text_of(node: ast.expr, named: Callable[[str], object]) -> str | None:
    match node:
        case ast.JoinedStr(values=parts):
            return _joined([value_of(part, named) for part in parts])
        case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
            value = value_of(inner, named)
            return str(value) if isinstance(value, str | int | float) else None
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([value_of(left, named), value_of(right, named)])
    return None


def _joined(parts: list[object]) -> str | None:
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if len(texts) == len(parts) else None
