"""What the executed cells did to what they imported: the calls they made, the attributes and items they set.

A cell's own statements are read, and the bodies of the notebook's functions that they call; so are the functions of
modules that lie beside the notebook.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from jupyter_autotrain.capture.state import own_modules
from jupyter_autotrain.capture.state.paths import path_of, path_of_value
from jupyter_autotrain.capture.syntax.cells import Cell, python_tree
from jupyter_autotrain.capture.syntax.history import Position
from jupyter_autotrain.capture.syntax.scopes import Function, arguments_of, bound_by, imported_name, star_names

_WITHOUT_BODY = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue)
_OBJECTS_OF_A_LIBRARY = frozenset({"decimal.getcontext()", "logging.getLogger()"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement stands.

    Attributes:
        cell: The executed cell that ran it.
        text: The text that it is part of: the cell's, or a module's.
        outer: The cell's own statement around it.
        index: The place of the cell in the order of execution.
        aliases: What names mean there: `np` -> `numpy`.
        functions: The functions and classes that are defined there.
        own: Names that exist only there: a function's, a loop's.
        blocks: The statements with blocks that it stands in, outermost first.
        in_function: True in the body of a function.
        module: The module it stands in; "" for the notebook.
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
class Touch:
    """A call of something imported, or an assignment to a part of it.

    Attributes:
        path: What was called or set, by its full name: `numpy.random.seed`, `torch.Tensor.area`.
        node: The statement.
        target: The call, or the attribute or item that was set.
        place: Where it stands.
        value: What was assigned; None for calls.
        is_alone: A call whose value is thrown away.
        is_last: It ends its cell, so that its value was shown.
        is_followed: The function that was called is read as well.
    """

    path: str
    node: ast.stmt
    target: ast.expr
    place: Place
    value: ast.expr | None = None
    is_alone: bool = False
    is_last: bool = False
    is_followed: bool = False

    @property
    def position(self) -> Position:
        """When it ran."""
        line = self.place.outer if self.place.in_function else self.node
        return (self.place.index, line.lineno, line.col_offset)

    @property
    def text(self) -> str:
        """The statement as written; one of a function on lines of its own."""
        if self.place.in_function:
            return ast.unparse(self.node)
        return ast.get_source_segment(self.place.text, self.node) or ast.unparse(self.node)


def find(cells: Iterable[Cell], namespace: Mapping[str, object]) -> list[Touch]:
    """All touches of the executed cells, in the order in which they ran."""
    reader = _Reader(namespace)
    for index, cell in enumerate(cells):
        read = python_tree(cell.source)
        if read is not None:
            reader.read(index, cell, *read)
    return reader.touches


def aliases_in(trees: Iterable[ast.AST]) -> dict[str, str]:
    """The full names of everything that some code imports, wherever in it."""
    return {name: path for tree in trees for node in ast.walk(tree) for name, path in _imported(node).items()}


@dataclass(slots=True)
class _Reader:
    namespace: Mapping[str, object]
    touches: list[Touch] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    functions: dict[str, ast.stmt] = field(default_factory=dict)
    modules: dict[str, Place | None] = field(default_factory=dict)
    entered: set[tuple[int, int]] = field(default_factory=set)

    def read(self, index: int, cell: Cell, tree: ast.Module, text: str) -> None:
        for statement in tree.body:
            place = Place(cell, text, statement, index, self.aliases, self.functions)
            before = len(self.touches)
            self._statement(statement, place)
            if statement is tree.body[-1]:
                self.touches[before:] = [replace(touch, is_last=True) for touch in self.touches[before:]]

    def _statement(self, node: ast.stmt, place: Place) -> None:
        if isinstance(node, Function | ast.ClassDef):
            self._define(node, place)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            place.aliases.update(_imported(node))
        elif not isinstance(node, _WITHOUT_BODY):
            self._action(node, place)

    def _define(self, node: Function | ast.ClassDef, place: Place) -> None:
        place.functions[node.name] = node
        place.aliases.pop(node.name, None)
        for decorator in node.decorator_list:
            self._expressions(node, decorator, place)

    def _action(self, node: ast.stmt, place: Place) -> None:
        """A statement that acts: its expressions, then its blocks, then what it binds."""
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr | ast.withitem)]
        for part in parts:
            self._expressions(node, part, place)
        for target, value in _assigned(node):
            path = self._path(target, place)
            if path and not isinstance(target, ast.Name):
                self.touches.append(Touch(path, node, target, place, value))
        inner = list(_blocks(node))
        local = bound_by([node]) if isinstance(node, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith) else set()
        for statement in inner:
            self._statement(statement, replace(place, own=place.own | local, blocks=(*place.blocks, node)))
        if not inner:
            self._bind(node, place)

    def _bind(self, node: ast.stmt, place: Place) -> None:
        """A name bound to something else means no module any more; one bound to a part of a library means that."""
        for name in bound_by([node]):
            place.aliases.pop(name, None)
            place.functions.pop(name, None)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            path = self._path(node.value, place)
            if path and ("(" not in path or path in _OBJECTS_OF_A_LIBRARY) and not isinstance(node.value, ast.Name):
                place.aliases[node.targets[0].id] = path

    def _expressions(self, node: ast.stmt, root: ast.AST, place: Place) -> None:
        for part in ast.walk(root):
            if isinstance(part, ast.Call):
                self._call(node, part, place)

    def _call(self, node: ast.stmt, call: ast.Call, place: Place) -> None:
        if (patch := _as_assignment(call)) is not None:
            target, value = patch
            if path := self._path(target, place):
                self.touches.append(Touch(path, node, target, place, value))
            return
        path = self._path(call.func, place)
        is_followed = self._follow(call.func, path, place)
        if path:
            is_alone = isinstance(node, ast.Expr) and node.value is call
            self.touches.append(Touch(path, node, call, place, is_alone=is_alone, is_followed=is_followed))

    def _follow(self, function: ast.expr, path: str, place: Place) -> bool:
        """Read the body of a called function; False when it cannot be seen."""
        if isinstance(function, ast.Name) and function.id in place.functions:
            self._enter(place.functions[function.id], place, place)
            return True
        package, _, name = path.rpartition(".")
        module = self._module(package) if package else None
        if module is None or name not in module.functions:
            return False
        self._enter(module.functions[name], module, place)
        return True

    def _module(self, name: str) -> Place | None:
        """A module beside the notebook, read; None for all others."""
        if name not in self.modules:
            self.modules[name] = None
            if (read := own_modules.read(name)) is not None:
                tree, text = read
                aliases = aliases_in([tree])
                functions = {part.name: part for part in tree.body if isinstance(part, Function | ast.ClassDef)}
                start = ast.Pass(lineno=1, col_offset=0)
                self.modules[name] = Place(Cell(0, ""), text, start, 0, aliases, {**functions}, module=name)
        return self.modules[name]

    def _enter(self, node: ast.stmt, home: Place, caller: Place) -> None:
        """Read the body of a function, or the bodies of a class's methods, once a cell."""
        if (caller.index, id(node)) in self.entered:
            return
        self.entered.add((caller.index, id(node)))
        bodies = (
            [node] if isinstance(node, Function) else [part for part in _blocks(node) if isinstance(part, Function)]
        )
        for function in bodies:
            own = arguments_of(function) | bound_by(function.body)
            place = replace(
                caller, text=home.text, module=home.module, in_function=True, own=frozenset(own),
                aliases={n: path for n, path in home.aliases.items() if n not in own}, functions=dict(home.functions),
            )  # fmt: skip
            for statement in function.body:
                self._statement(statement, place)

    def _path(self, expression: ast.expr, place: Place) -> str:
        path = path_of(expression, place.aliases)
        root = _root(expression)
        if path or place.module or root is None or root in place.own or root in place.functions:
            return path
        value = path_of_value(self.namespace.get(root))
        return path_of(expression, {root: value}) if value else ""


def _root(expression: ast.expr) -> str | None:
    while isinstance(expression, ast.Attribute | ast.Subscript | ast.Call):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression.id if isinstance(expression, ast.Name) else None


def _imported(node: ast.AST) -> dict[str, str]:
    """What an import statement binds, by full names."""
    if isinstance(node, ast.Import):
        return {imported_name(a): a.name if a.asname else a.name.partition(".")[0] for a in node.names}
    if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
        return {}
    if node.names[0].name == "*":
        return {name: f"{node.module}.{name}" for name in star_names(node.module) or ()}
    return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}


def _assigned(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What a statement assigns to, and what."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            yield from ((element, node.value if element is target else None) for element in elements)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        yield node.target, node.value if isinstance(node, ast.AnnAssign) else None


def _as_assignment(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """`setattr(owner, "name", value)` as what it does: an assignment."""
    if not (isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3):
        return None
    owner, name, value = call.args
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return None
    return ast.copy_location(ast.Attribute(owner, name.value, ast.Store()), call), value


def _blocks(node: ast.stmt) -> Iterator[ast.stmt]:
    """The statements inside a statement."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.stmt):
            yield part
        elif isinstance(part, ast.ExceptHandler | ast.match_case):
            yield from part.body
