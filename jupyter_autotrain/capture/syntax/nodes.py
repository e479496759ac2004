"""Single nodes of a syntax tree: their names and values, and edits of the text that they were read from."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator


def called(node: ast.AST) -> str:
    """Return the last part of the name that a call has; "" for anything but a call of a name."""
    function = node.func if isinstance(node, ast.Call) else None
    return str(getattr(function, "id", getattr(function, "attr", "")))


def root_name(node: ast.AST, *, through_calls: bool = True) -> str:
    """Return the name that an attribute, an item or a call starts from; "" when it starts from none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        if isinstance(node, ast.Call):
            if not through_calls:
                return ""
            node = node.func
        else:
            node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_set(node: ast.AST) -> bool:
    """Tell whether a node is an attribute or an item that is set or deleted there."""
    return isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)


def names_in(*nodes: ast.AST) -> set[str]:
    """Return the names that expressions mention."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """Return all that is given to a call."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def keywords_of(call: ast.Call, *names: str) -> list[ast.expr]:
    """Return what a call is given under one of these names."""
    return [keyword.value for keyword in call.keywords if keyword.arg in names]


def written_text(node: ast.AST | None) -> str:
    """Return a text that is written out; "" for any other expression."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def assignments(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield the targets that a statement assigns to, each with its value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            for element in elements:
                yield element, node.value if element is target else None
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        yield node.target, node.value if isinstance(node, ast.AnnAssign) else None


def inner_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements inside a statement."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.stmt):
            yield part
        elif isinstance(part, ast.ExceptHandler | ast.match_case):
            yield from part.body


# Edits: every line keeps its number


def put(lines: list[str], node: ast.stmt | ast.expr, new: str) -> None:
    """Replace a node by `new`; the number of lines stays, columns count UTF-8 bytes."""
    first = node.lineno - 1
    last = (node.end_lineno or node.lineno) - 1
    head = lines[first].encode()[: node.col_offset].decode()
    tail = lines[last].encode()[node.end_col_offset :].decode()
    fresh = f"{head}{new}{tail}".split("\n")
    lines[first : last + 1] = [*fresh, *[""] * (last + 1 - first - len(fresh))]


def replaced(text: str, pairs: Iterable[tuple[ast.stmt | ast.expr, str]]) -> str:
    """Return the text with other code in the place of some nodes, none of which holds another."""
    lines = text.split("\n")
    for node, new in sorted(pairs, key=lambda pair: (pair[0].lineno, pair[0].col_offset), reverse=True):
        put(lines, node, new)
    return "\n".join(lines)
