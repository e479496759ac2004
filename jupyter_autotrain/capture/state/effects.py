"""The effects of the executed cells on their imports: the calls they made, the attributes and items they set.

A cell's own statements are read, and the bodies of the functions that they call: the notebook's, and those of modules
beside it. A name means what it is bound to now.
"""

from __future__ import annotations

import ast
import decimal
import logging
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.state import libraries
from jupyter_autotrain.capture.state.paths import path_of, path_of_value
from jupyter_autotrain.capture.syntax.cells import Cell, python_tree
from jupyter_autotrain.capture.syntax.history import Position
from jupyter_autotrain.capture.syntax.nodes import assignments, inner_statements, root_name
from jupyter_autotrain.capture.syntax.scopes import Function, bound_by, imported_names, own_names

CHANGES_A_PART = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "setdefault", "update"}
)
"""Methods that change a container."""
_OBJECTS: Mapping[type, str] = {decimal.Context: "decimal.getcontext()", logging.Logger: "logging.getLogger()"}


@dataclass(frozen=True, slots=True)
class _Scope:
    """The cell, blocks and names around a statement.

    Attributes:
        cell: The executed cell that ran it.
        position: When.
        aliases: The full names of what is imported there.
        own: Names that exist only there, as they are a function's.
        blocks: The compound statements around it, outermost first.
        module: The module it is in; "" for the notebook.
        is_last: Whether it is, or is in, the last statement of its cell.
    """

    cell: Cell
    position: Position
    aliases: Mapping[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    blocks: tuple[ast.stmt, ...] = ()
    module: str = ""
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Effect:
    """A call of something imported, or an assignment to a part of it.

    Attributes:
        path: What was called or set, by its full name: `numpy.seterr`, `torch.Tensor.area`.
        target: The call, or the attribute or item that was set.
        cell: The cell that did it.
        position: When.
        is_alone: A call whose value is thrown away, or a decorator.
        is_undone: It stands in a block that sets all back at its end, such as `with warnings.catch_warnings():`.
        is_shown: It ends its cell, so that its value was shown.
        registers: The function or class that it decorates; "" for any other.
    """

    path: str
    target: ast.expr
    cell: Cell
    position: Position
    is_alone: bool = False
    is_undone: bool = False
    is_shown: bool = False
    registers: str = ""


def find(cells: Iterable[Cell], namespace: Mapping[str, object]) -> list[Effect]:
    """Return all effects of the executed cells, in the order in which they ran."""
    reader = _EffectReader(namespace)
    aliases: dict[str, str] = {}
    for index, cell in enumerate(cells):
        read = python_tree(cell.source)
        body = read[0].body if read else []
        bound = bound_by(body)
        aliases = {name: path for name, path in aliases.items() if name not in bound} | aliases_in(body)
        for statement in body:
            position = (index, statement.lineno, statement.col_offset)
            reader.visit(statement, _Scope(cell, position, aliases, is_last=statement is body[-1]))
    return reader.effects


class _EffectReader:
    """A reader of statements in the order in which they ran.

    Args:
        namespace: The notebook's globals.
    """

    def __init__(self, namespace: Mapping[str, object]) -> None:
        self.effects: list[Effect] = []
        self._namespace = namespace
        self._functions: dict[tuple[str, str], ast.stmt] = {}
        self._entered: set[tuple[int, int]] = set()

    def visit(self, node: ast.stmt, scope: _Scope) -> None:
        """Read a statement, and what it contains and calls."""
        if isinstance(node, Function | ast.ClassDef):
            self._functions[scope.module, node.name] = node
            for decorator in node.decorator_list:
                self._expressions(decorator, scope, alone=decorator, registers=node.name)
            return
        alone = node.value if isinstance(node, ast.Expr) else None
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr | ast.withitem):
                self._expressions(part, scope, alone=alone)
        self._assignments(node, scope)
        for statement in inner_statements(node):
            self.visit(statement, replace(scope, blocks=(*scope.blocks, node)))

    def _assignments(self, node: ast.stmt, scope: _Scope) -> None:
        for target, _ in assignments(node):
            if isinstance(target, ast.Attribute | ast.Subscript) and (path := self._path(target, scope)):
                is_loop = root_name(target) in _bound_by_loops(scope.blocks)
                self._note(f"{path}.setattr" if is_loop else path, target, scope, is_alone=is_loop)

    def _note(self, path: str, target: ast.expr, scope: _Scope, *, is_alone: bool = False, registers: str = "") -> None:
        tops = set[str]()
        for block in scope.blocks:
            for item in block.items if isinstance(block, ast.With) else ():
                for part in ast.walk(item.context_expr):
                    if isinstance(part, ast.Name):
                        tops.add(self._path(part, scope).partition(".")[0])
        is_undone = path.partition(".")[0] in tops
        is_shown = scope.is_last and not scope.blocks
        self.effects.append(Effect(path, target, scope.cell, scope.position, is_alone, is_undone, is_shown, registers))

    def _expressions(self, root: ast.AST, scope: _Scope, *, alone: ast.expr | None = None, registers: str = "") -> None:
        for part in ast.walk(root):
            if not isinstance(part, ast.Call):
                continue
            name = getattr(part.func, "id", "")
            if name in {"setattr", "delattr"} and part.args:
                self._set_by_call(part, scope)
                continue
            path = self._path(part.func, scope)
            is_followed = self._follow(part.func, path, scope)
            if path and not is_followed:
                self._note(path, part, scope, is_alone=part is alone, registers=registers)

    def _set_by_call(self, call: ast.Call, scope: _Scope) -> None:
        """Note `setattr(owner, "name", value)` as an assignment, where the name is written out."""
        owner = self._path(call.args[0], scope)
        name = call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], ast.Constant) else None
        is_loop = root_name(call.args[0]) in _bound_by_loops(scope.blocks)
        if owner and isinstance(name, str) and len(call.args) == 3 and not is_loop:
            self._note(f"{owner}.{name}", ast.Attribute(call.args[0], name, ast.Store()), scope)
        elif owner:
            self._note(f"{owner}.setattr", call, scope, is_alone=True)

    def _follow(self, function: ast.expr, path: str, scope: _Scope) -> bool:
        """Read the body of a called function; return False when it cannot be seen."""
        if isinstance(function, ast.Name) and (found := self._functions.get((scope.module, function.id))):
            self._enter(found, scope)
            return True
        module, _, name = path.rpartition(".")
        read = libraries.read(module) if module else None
        if read is None:
            return False
        inner = replace(scope, module=module, aliases=aliases_in([read[0]]), own=frozenset())
        definitions = [node for node in read[0].body if isinstance(node, Function | ast.ClassDef)]
        self._functions |= {(module, node.name): node for node in definitions}
        for node in definitions:
            if node.name == name:
                self._enter(node, inner)
        return any(node.name == name for node in definitions)

    def _enter(self, node: ast.stmt, scope: _Scope) -> None:
        """Read the body of a function, or the bodies of a class's methods, once a cell."""
        if (scope.position[0], id(node)) in self._entered:
            return
        self._entered.add((scope.position[0], id(node)))
        for function in [node] if isinstance(node, Function) else inner_statements(node):
            if isinstance(function, Function):
                own = frozenset(own_names(function))
                aliases = {**scope.aliases, **aliases_in([function])}
                for statement in function.body:
                    self.visit(statement, replace(scope, own=own - set(aliases), aliases=aliases))

    def _path(self, expression: ast.expr, scope: _Scope) -> str:
        root = root_name(expression)
        if not root or root in scope.own:
            return ""
        value = None if scope.module else self._namespace.get(root)
        known = scope.aliases.get(root, "") or _OBJECTS.get(type(value), "") or path_of_value(value)
        return path_of(expression, {root: known}) if known else ""


def _bound_by_loops(blocks: Iterable[ast.stmt]) -> set[str]:
    return bound_by(block.target for block in blocks if isinstance(block, ast.For | ast.AsyncFor))


# Which cells name something


def names_from(module: str, namespace: Mapping[str, object]) -> set[str]:
    """Return the names of the notebook that mean a module, its package, or something of it; none for no module."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return set()
    held = {id(value) for value in vars(loaded).values() if not isinstance(value, int | float | str | type(None))}
    packages = {module, *(module[:end] for end, letter in enumerate(module) if letter == ".")}
    own = {id(sys.modules.get(package)) for package in packages} | held
    return {
        name
        for name, value in namespace.items()
        if id(value) in own or looking.attribute(value, "__module__") == module
    }


def cells_naming(names: Collection[str], cells: Iterable[Cell], *, in_texts: bool = False) -> list[int]:
    """Return the numbers of the cells that use or define one of these names, or have it as a text."""
    found = dict[int, None]()
    for cell in cells:
        read = python_tree(cell.source)
        if read is not None and any(_is_naming(node, names, in_texts=in_texts) for node in ast.walk(read[0])):
            found[cell.number] = None
    return list(found)


def _is_naming(node: ast.AST, names: Collection[str], *, in_texts: bool) -> bool:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) | ast.FunctionDef(name=name) | ast.keyword(arg=str(name)):
            return name in names
        case ast.Constant(value=str(text)):
            return in_texts and text.rpartition(".")[2] in names
        case ast.Attribute(attr=name):
            return name in names and not isinstance(node.ctx, ast.Load)
    return False


def aliases_in(trees: Iterable[ast.AST]) -> dict[str, str]:
    """Return the full names of everything that some code imports, wherever in it."""
    aliases: dict[str, str] = {}
    for tree in trees:
        for node in ast.walk(tree):
            aliases |= imported_names(node)
    return aliases
