"""The bindings that the executed cells made, their order, and the changes since."""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType

from jupyter_autotrain.capture.syntax.cells import Cell, python_tree
from jupyter_autotrain.capture.syntax.names import Names, analyse
from jupyter_autotrain.capture.syntax.nodes import assignments, inner_statements
from jupyter_autotrain.capture.syntax.scopes import bound_by

_NO_VALUES: Mapping[str, object] = MappingProxyType({})
Position = tuple[int, int, int]
"""(place of the cell in the order of execution, line in it, column in that line)."""


class BindingKind(StrEnum):
    """The kinds of binding a name."""

    DEFINITION = "definition"
    LAMBDA = "lambda"
    IMPORT = "import"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Binding:
    """A statement that bound a name.

    Attributes:
        name: The name.
        kind: How it was bound.
        node: The innermost statement that did it.
        outer: The cell's own statement around it; the same as `node` at the left margin.
        position: When.
        cell: The executed cell.
        text: The cell's text as Python.
    """

    name: str
    kind: BindingKind
    node: ast.stmt
    outer: ast.stmt
    position: Position
    cell: Cell
    text: str

    @property
    def first_line(self) -> int:
        """The line where its source starts, decorators included."""
        decorators: list[ast.expr] = getattr(self.node, "decorator_list", [])
        return min([self.node.lineno, *(decorator.lineno for decorator in decorators)])

    @property
    def source(self) -> str:
        """The statement's text; a definition as whole lines, indented as written."""
        if self.kind is not BindingKind.DEFINITION:
            return ast.get_source_segment(self.text, self.node) or ast.unparse(self.node)
        lines = self.text.split("\n")[self.first_line - 1 : self.node.end_lineno]
        return "\n".join(lines)

    @property
    def label(self) -> str:
        """The cell, as users know it."""
        return self.cell.label


class History:
    """The bindings of all executed cells, in order.

    Args:
        cells: Executed cells in order of execution.
        values: What the notebook binds now.

    Attributes:
        home: The name of the module that the notebook's definitions are in.
    """

    def __init__(self, cells: Sequence[Cell], values: Mapping[str, object] = _NO_VALUES) -> None:
        self.cells = tuple(cells)
        self.values = values
        self.home = str(values.get("__name__", "__main__"))
        self._names: dict[ast.stmt, Names] = {}

    @cached_property
    def _bindings(self) -> dict[str, list[Binding]]:
        found: dict[str, list[Binding]] = {}
        for index, cell in enumerate(self.cells):
            read = python_tree(cell.source)
            if read is None:
                continue
            tree, text = read
            for outer in tree.body:
                for node, kind, names in _bindings_in(outer):
                    for name in sorted(names):
                        binding = Binding(name, kind, node, outer, (index, node.lineno, node.col_offset), cell, text)
                        found.setdefault(name, []).append(binding)
        return found

    @cached_property
    def futures(self) -> tuple[str, ...]:
        """Features of `from __future__` in force: IPython keeps them for all later cells."""
        trees = [read[0] for cell in self.cells if "__future__" in cell.source and (read := python_tree(cell.source))]
        return tuple(sorted({feature for tree in trees for feature in futures_in(tree)}))

    def bindings(self, name: str) -> Sequence[Binding]:
        """Return every binding of `name`, oldest first."""
        return self._bindings.get(name, ())

    def last(self, name: str, before: Position | None = None) -> Binding | None:
        """Return the latest binding of `name`, or the latest one before a position."""
        fitting = [b for b in self.bindings(name) if before is None or b.position < before]
        return fitting[-1] if fitting else None

    def label_of(self, name: str) -> str:
        """Return the cell that bound a name last, or ""."""
        last = self.last(name)
        return last.label if last else ""

    def named(self, name: str) -> Iterator[Binding]:
        """Yield the definitions called `name`, newest first."""
        return (
            b
            for b in reversed(self.bindings(name))
            if b.kind is not BindingKind.OTHER and b.kind is not BindingKind.IMPORT
        )

    def names_of(self, binding: Binding) -> Names:
        """Return the names that a binding's statement needs."""
        if binding.node not in self._names:
            lazy = "annotations" in self.futures
            self._names[binding.node] = analyse([binding.node], lazy_annotations=lazy, values=self.values)
        return self._names[binding.node]

    def changed_since(self, name: str, position: Position) -> str:
        """Return the event that changed the meaning of `name` since `position`; "" when there was none.

        A function or import that ran again unchanged changes nothing, unless something that it uses changed.
        """
        return self._changed(name, position, {name})

    def _changed(self, name: str, position: Position, seen: set[str]) -> str:
        now = self.last(name)
        then = self.last(name, position)
        if now is None:
            return ""
        if now is not then and not _same_again(now, then):
            return f"{now.label} bound {name} again" if then else f"{now.label} bound {name}"
        if now.kind is BindingKind.IMPORT:
            return ""
        uses = self.names_of(now)
        for used in sorted((uses.needed if now.kind is not BindingKind.OTHER else frozenset()) - seen):
            seen.add(used)
            if why := self._changed(used, position, seen):
                return why
        return ""

    def patches(self, name: str, since: Position) -> str:
        """Return the last statement after `since` that set an attribute of `name`.

        Such a statement is `Net.forward = fast`.
        """
        key = f".{name}"
        later = [b for b in self.bindings(key) if b.position > since]
        return f"{later[-1].label} set {ast.unparse(later[-1].node).partition('=')[0].strip()}" if later else ""


def futures_in(tree: ast.Module) -> set[str]:
    """Return the features that `from __future__` lines ask for."""
    lines = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    return {alias.name for line in lines for alias in line.names}


def compiler_flags(futures: Sequence[str]) -> int:
    """Return the compiler's flags for features of `__future__`."""
    flags = 0
    for feature in futures:
        flag: int = getattr(__future__, feature).compiler_flag
        flags |= flag
    return flags


def is_literal(node: ast.expr | None) -> bool:
    """Tell whether an expression is a value written out, which means the same everywhere."""
    if node is None:
        return False
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _same_again(now: Binding, then: Binding | None) -> bool:
    if then is None or now.kind is not then.kind or ast.dump(now.node) != ast.dump(then.node):
        return False
    if isinstance(now.node, ast.ClassDef):
        return False  # the same text makes another class: what was derived from the first is no subclass of it
    if now.kind is not BindingKind.OTHER:
        return True
    return isinstance(now.node, ast.Assign | ast.AnnAssign) and is_literal(now.node.value)


def _bindings_in(outer: ast.stmt) -> Iterator[tuple[ast.stmt, BindingKind, set[str]]]:
    """Yield each statement at or below `outer` that binds module-level names.

    One that sets attributes of a name is kept under `.NAME`, which no variable can be called.
    """
    kind = _kind_of(outer)
    if kind is not BindingKind.OTHER:
        yield outer, kind, bound_by([outer])
        return
    below = [found for part in inner_statements(outer) for found in _bindings_in(part)]
    own = bound_by([outer]).difference(*(names for _, _, names in below))
    if own and not (isinstance(outer, ast.AnnAssign) and outer.value is None):
        yield outer, BindingKind.OTHER, own
    yield from below
    for name in _patched(outer):
        yield outer, BindingKind.OTHER, {f".{name}"}


def _patched(statement: ast.stmt) -> Iterator[str]:
    """Yield the names of which a statement sets attributes."""
    for target, _ in assignments(statement):
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            yield target.value.id


def _kind_of(statement: ast.stmt) -> BindingKind:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return BindingKind.DEFINITION
        case ast.Import() | ast.ImportFrom():
            return BindingKind.IMPORT
        case ast.Assign(targets=[_], value=ast.Lambda()):
            return BindingKind.LAMBDA
    return BindingKind.OTHER
