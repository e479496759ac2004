"""What single statements import, assign and contain, read from the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from jupyter_autotrain.capture.syntax.scopes import imported_name, star_names

CHANGES_A_PART = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "setdefault", "update"}
)
"""Methods that change a container."""


def aliases_in(trees: Iterable[ast.AST]) -> dict[str, str]:
    """The full names of everything that some code imports, wherever in it."""
    aliases: dict[str, str] = {}
    for tree in trees:
        for node in ast.walk(tree):
            aliases |= imported_names(node)
    return aliases


def root_name(expression: ast.expr) -> str | None:
    """The name that an attribute, an item or a call starts from."""
    while isinstance(expression, ast.Attribute | ast.Subscript | ast.Call):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression.id if isinstance(expression, ast.Name) else None


def imported_names(node: ast.AST) -> dict[str, str]:
    """What an import statement binds, by full names."""
    if isinstance(node, ast.Import):
        return {imported_name(a): a.name if a.asname else a.name.partition(".")[0] for a in node.names}
    if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
        return {}
    if node.names[0].name == "*":
        return {name: f"{node.module}.{name}" for name in star_names(node.module) or ()}
    return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}


def assignments(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What a statement assigns to, and what."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            yield from ((element, node.value if element is target else None) for element in elements)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        yield node.target, node.value if isinstance(node, ast.AnnAssign) else None


def as_assignment(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """`setattr(owner, "name", value)` as what it does: an assignment."""
    if not (isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3):
        return None
    owner, name, value = call.args
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return None
    return ast.copy_location(ast.Attribute(owner, name.value, ast.Store()), call), value


def inner_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    """The statements inside a statement."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.stmt):
            yield part
        elif isinstance(part, ast.ExceptHandler | ast.match_case):
            yield from part.body
