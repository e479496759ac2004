"""The code of functions that travel pickled: what it opens, imports and reads counts like what the script does."""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import CodeType

from jupyter_autotrain.capture.script import TrialScript
from jupyter_autotrain.capture.syntax.cells import Cell
from jupyter_autotrain.capture.syntax.scopes import Function


@dataclass(frozen=True, slots=True)
class PickledDefinition:
    """A definition that data of a trial holds.

    Attributes:
        node: Its statement; a method's class; a lambda as a statement.
        lines: The lines of its text.
    """

    node: ast.stmt
    lines: tuple[str, ...]


def appended(script: TrialScript, found: Iterable[PickledDefinition], cells: Sequence[Cell]) -> TrialScript:
    """Put definitions below a script, with the places that they come from.

    Args:
        script: The script.
        found: The definitions.
        cells: The executed cells.
    """
    body = list(script.tree.body)
    places = list(script.source_map)
    for one in found:
        node = copy.deepcopy(one.node)
        if isinstance(node, Function | ast.ClassDef):
            node.decorator_list = []  # they have run here
        label = _label(one, cells)
        body.append(ast.increment_lineno(node, len(places) + 1 - node.lineno))
        places += [f"{label}:{one.node.lineno + index}" if label else "" for index in range(len(one.lines))]
    return replace(script, tree=ast.Module(body, []), source_map=tuple(places))


def trees(codes: Iterable[CodeType]) -> list[ast.Module]:
    """Return the same definitions, each as code of its own."""
    return [ast.Module([one.node], []) for one in definitions(codes)]


def definitions(codes: Iterable[CodeType]) -> list[PickledDefinition]:
    """Return the definitions that some code was compiled from, as far as their text is known."""
    texts: dict[str, list[tuple[int, str, PickledDefinition]]] = {}
    found: dict[int, PickledDefinition] = {}
    for code in codes:
        file = code.co_filename
        if file not in texts:
            texts[file] = list(_definitions_in([line.rstrip("\n") for line in linecache.getlines(file)]))
        for first_line, name, definition in texts[file]:
            if (first_line, name) == (code.co_firstlineno, code.co_name):
                found[id(definition.node)] = definition
    return list(found.values())


def _definitions_in(lines: Sequence[str]) -> Iterator[tuple[int, str, PickledDefinition]]:
    """Yield each function of a text: where its code begins, its name, and the definition that it is a part of."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return
    for around in ast.walk(tree):
        for node in ast.iter_child_nodes(around):
            if isinstance(node, Function):
                first_line = min(part.lineno for part in (node, *node.decorator_list))
                statement = around if isinstance(around, ast.ClassDef) else node
                yield first_line, node.name, _definition(statement, lines)
            elif isinstance(node, ast.Lambda):
                yield node.lineno, "<lambda>", _definition(ast.copy_location(ast.Expr(node), node), lines)


def _definition(node: ast.stmt, lines: Sequence[str]) -> PickledDefinition:
    return PickledDefinition(node, tuple(lines[node.lineno - 1 : node.end_lineno]))


def _label(definition: PickledDefinition, cells: Sequence[Cell]) -> str:
    """Return the newest cell that has the definition on these very lines, as users know it; "" when none does."""
    start = definition.node.lineno - 1
    for cell in reversed(cells):
        if tuple(cell.source.split("\n")[start : start + len(definition.lines)]) == definition.lines:
            return cell.label
    return ""
