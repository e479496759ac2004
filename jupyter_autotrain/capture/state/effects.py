"""What the executed cells did to what they imported: the calls they made, the attributes and items they set.

A cell's own statements are read, and the bodies of the notebook's functions that they call; so are the functions of
modules that lie beside the notebook.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from jupyter_autotrain.capture.state import own_modules
from jupyter_autotrain.capture.state.paths import path_of, path_of_value
from jupyter_autotrain.capture.state.statements import (
    aliases_in,
    as_assignment,
    assignments,
    imported_names,
    inner_statements,
    root_name,
)
from jupyter_autotrain.capture.syntax.cells import Cell, python_tree
from jupyter_autotrain.capture.syntax.history import Position
from jupyter_autotrain.capture.syntax.scopes import Function, arguments_of, bound_by

_WITHOUT_BODY = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue)
_OBJECTS_OF_A_LIBRARY = frozenset({"decimal.getcontext()", "logging.getLogger()"})


@dataclass(slots=True)
class StatementScope:
    """The cell, blocks and names around a statement; reading a statement changes the names.

    Attributes:
        cell: The executed cell that ran it.
        text: The text that it is part of: the cell's, or a module's.
        outer: The cell's own statement around it.
        index: The position of the cell in the order of execution.
        aliases: The full names of imports: `np` -> `numpy`.
        functions: The functions and classes that are defined there.
        own: Names that exist only there: a function's, a loop's.
        blocks: The compound statements around it, outermost first.
        in_function: True in the body of a function.
        module: The module it is in; "" for the notebook.
    """

    cell: Cell
    text: str
    outer: ast.stmt
    index: int
    aliases: dict[str, str]
    functions: dict[str, ast.stmt]
    own: frozenset[str] = frozenset()
    blocks: tuple[ast.stmt, ...] = ()
    in_function: bool = False
    module: str = ""

    @property
    def label(self) -> str:
        """The cell, as users know it."""
        return self.cell.label


@dataclass(frozen=True, slots=True)
class Effect:
    """A call of something imported, or an assignment to a part of it.

    Attributes:
        path: What was called or set, by its full name: `numpy.random.seed`, `torch.Tensor.area`.
        node: The statement.
        target: The call, or the attribute or item that was set.
        scope: The scope of the statement.
        value: What was assigned; None for calls.
        is_alone: A call whose value is thrown away.
        is_last: It ends its cell, so that its value was shown.
        is_followed: The function that was called is read as well.
    """

    path: str
    node: ast.stmt
    target: ast.expr
    scope: StatementScope
    value: ast.expr | None = None
    is_alone: bool = False
    is_last: bool = False
    is_followed: bool = False

    @property
    def position(self) -> Position:
        """When it ran."""
        line = self.scope.outer if self.scope.in_function else self.node
        return (self.scope.index, line.lineno, line.col_offset)

    @property
    def text(self) -> str:
        """The statement as written; one of a function on lines of its own."""
        if self.scope.in_function:
            return ast.unparse(self.node)
        return ast.get_source_segment(self.scope.text, self.node) or ast.unparse(self.node)


def find(cells: Iterable[Cell], namespace: Mapping[str, object]) -> list[Effect]:
    """All effects of the executed cells, in the order in which they ran."""
    reader = _EffectReader(namespace)
    for index, cell in enumerate(cells):
        read = python_tree(cell.source)
        if read is not None:
            reader.read(index, cell, *read)
    return reader.effects


@dataclass(slots=True)
class _EffectReader:
    namespace: Mapping[str, object]
    effects: list[Effect] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    functions: dict[str, ast.stmt] = field(default_factory=dict)
    modules: dict[str, StatementScope | None] = field(default_factory=dict)
    entered: set[tuple[int, int]] = field(default_factory=set)

    def read(self, index: int, cell: Cell, tree: ast.Module, text: str) -> None:
        for statement in tree.body:
            scope = StatementScope(cell, text, statement, index, self.aliases, self.functions)
            before = len(self.effects)
            self._statement(statement, scope)
            if statement is tree.body[-1]:
                self.effects[before:] = [replace(effect, is_last=True) for effect in self.effects[before:]]

    def _statement(self, node: ast.stmt, scope: StatementScope) -> None:
        if isinstance(node, Function | ast.ClassDef):
            self._define(node, scope)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            scope.aliases.update(imported_names(node))
        elif not isinstance(node, _WITHOUT_BODY):
            self._action(node, scope)

    def _define(self, node: Function | ast.ClassDef, scope: StatementScope) -> None:
        scope.functions[node.name] = node
        scope.aliases.pop(node.name, None)
        for decorator in node.decorator_list:
            self._expressions(node, decorator, scope)

    def _action(self, node: ast.stmt, scope: StatementScope) -> None:
        """A statement that acts: its expressions, then its blocks, then what it binds."""
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr | ast.withitem)]
        for part in parts:
            self._expressions(node, part, scope)
        for target, value in assignments(node):
            path = self._path(target, scope)
            if path and not isinstance(target, ast.Name):
                self.effects.append(Effect(path, node, target, scope, value))
            elif isinstance(target, ast.Attribute) and not isinstance(value, ast.Lambda):
                self._in_loop(node, target, scope)
        inner = list(inner_statements(node))
        local = bound_by([node]) if isinstance(node, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith) else set()
        for statement in inner:
            self._statement(statement, replace(scope, own=scope.own | local, blocks=(*scope.blocks, node)))
        if not inner:
            self._bind(node, scope)

    def _in_loop(self, node: ast.stmt, target: ast.Attribute, scope: StatementScope) -> None:
        """An attribute set on each of several classes: `for cls in (A, B): cls.flag = 1`."""
        last = "" if scope.in_function else path_of_value(self.namespace.get(root_name(target) or ""))
        if last and root_name(target) in scope.own:
            self.effects.append(Effect(f"{last}.setattr", node, target, scope, is_alone=True))

    def _bind(self, node: ast.stmt, scope: StatementScope) -> None:
        """A name bound to something else means no module any more; one bound to a part of a library means that."""
        for name in bound_by([node]):
            scope.aliases.pop(name, None)
            scope.functions.pop(name, None)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            path = self._path(node.value, scope)
            if path and ("(" not in path or path in _OBJECTS_OF_A_LIBRARY) and not isinstance(node.value, ast.Name):
                scope.aliases[node.targets[0].id] = path

    def _expressions(self, node: ast.stmt, root: ast.AST, scope: StatementScope) -> None:
        for part in ast.walk(root):
            if isinstance(part, ast.Call):
                self._call(node, part, scope)

    def _call(self, node: ast.stmt, call: ast.Call, scope: StatementScope) -> None:
        if (patch := as_assignment(call)) is not None:
            target, value = patch
            if path := self._path(target, scope):
                self.effects.append(Effect(path, node, target, scope, value))
            return
        if isinstance(call.func, ast.Name) and call.func.id in {"setattr", "delattr"} and call.args:
            if (owner := self._path(call.args[0], scope)) and not isinstance(call.args[-1], ast.Lambda):
                self.effects.append(Effect(f"{owner}.{call.func.id}", node, call, scope, is_alone=True))
            return
        path = self._path(call.func, scope)
        is_followed = self._follow(call.func, path, scope)
        if path:
            is_alone = isinstance(node, ast.Expr) and node.value is call
            self.effects.append(Effect(path, node, call, scope, is_alone=is_alone, is_followed=is_followed))

    def _follow(self, function: ast.expr, path: str, scope: StatementScope) -> bool:
        """Read the body of a called function; False when it cannot be seen."""
        if isinstance(function, ast.Name) and function.id in scope.functions:
            self._enter(scope.functions[function.id], scope, scope)
            return True
        package, _, name = path.rpartition(".")
        module = self._module(package) if package else None
        if module is None or name not in module.functions:
            return False
        self._enter(module.functions[name], module, scope)
        return True

    def _module(self, name: str) -> StatementScope | None:
        """A module beside the notebook, read; None for all others."""
        if name not in self.modules:
            self.modules[name] = None
            if (read := own_modules.read(name)) is not None:
                tree, text = read
                aliases = aliases_in([tree])
                functions = {part.name: part for part in tree.body if isinstance(part, Function | ast.ClassDef)}
                start = ast.Pass(lineno=1, col_offset=0)
                self.modules[name] = StatementScope(Cell(0, ""), text, start, 0, aliases, {**functions}, module=name)
        return self.modules[name]

    def _enter(self, node: ast.stmt, home: StatementScope, caller: StatementScope) -> None:
        """Read the body of a function, or the bodies of a class's methods, once a cell."""
        if (caller.index, id(node)) in self.entered:
            return
        self.entered.add((caller.index, id(node)))
        inner = [node] if isinstance(node, Function) else inner_statements(node)
        bodies = [part for part in inner if isinstance(part, Function)]
        for function in bodies:
            own = arguments_of(function) | bound_by(function.body)
            scope = replace(
                caller, text=home.text, module=home.module, in_function=True, own=frozenset(own),
                aliases={n: path for n, path in home.aliases.items() if n not in own}, functions=dict(home.functions),
            )  # fmt: skip
            for statement in function.body:
                self._statement(statement, scope)

    def _path(self, expression: ast.expr, scope: StatementScope) -> str:
        path = path_of(expression, scope.aliases)
        root = root_name(expression)
        if path or scope.module or root is None or root in scope.own or root in scope.functions:
            return path
        value = path_of_value(self.namespace.get(root))
        return path_of(expression, {root: value}) if value else ""
