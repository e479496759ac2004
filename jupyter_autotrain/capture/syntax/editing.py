"""Edits of a text by the syntax tree it was parsed to; every line keeps its number."""

from __future__ import annotations

import ast
from collections.abc import Iterable


def put(lines: list[str], node: ast.stmt | ast.expr, new: str) -> None:
    """Replace a node by `new`; the number of lines stays, columns count UTF-8 bytes."""
    first = node.lineno - 1
    last = (node.end_lineno or node.lineno) - 1
    head = lines[first].encode()[: node.col_offset].decode()
    tail = lines[last].encode()[node.end_col_offset :].decode()
    fresh = f"{head}{new}{tail}".split("\n")
    lines[first : last + 1] = [*fresh, *[""] * (last + 1 - first - len(fresh))]


def replaced(text: str, pairs: Iterable[tuple[ast.stmt | ast.expr, str]]) -> str:
    """The text with other code in the place of some nodes, none of which holds another."""
    lines = text.split("\n")
    for node, new in sorted(pairs, key=lambda pair: (pair[0].lineno, pair[0].col_offset), reverse=True):
        put(lines, node, new)
    return "\n".join(lines)
