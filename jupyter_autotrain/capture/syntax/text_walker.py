"""Reading the names that texts of known calls have, in the scope of the call."""

# ast.NodeVisitor names the methods, and says what they are for.
# ruff: noqa: D102, N802

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property

from jupyter_autotrain.capture.syntax import main_module, texts
from jupyter_autotrain.capture.syntax.known_texts import value_of
from jupyter_autotrain.capture.syntax.scopes import own_texts
from jupyter_autotrain.capture.syntax.scoping import ScopeWalker


class TextWalker(ScopeWalker):
    """As `ScopeWalker`, with the names in texts.

    Args:
        statements: The module-level statements to walk.
        lazy_annotations: True under `from __future__ import annotations`.
        values: What the notebook binds.
    """

    def __init__(self, statements: Sequence[ast.stmt], lazy_annotations: bool, values: Mapping[str, object]) -> None:
        super().__init__(statements, lazy_annotations)
        self.values = values
        self.unknown: set[str] = set()
        self.explained: set[int] = set()

    def visit(self, node: ast.AST) -> None:
        """Note a use of all names at once."""
        if texts.is_scope(node, self._value) or main_module.is_main(node, self._value):
            if id(node) not in self.explained and not self._is_local(node):
                self.unknown.add(ast.unparse(node))
            self.explained.update(id(part) for part in ast.walk(node))
        super().visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if main_module.is_main(node.value, self._value):
            self.explained.add(id(node.value))  # what reads names is the name that it gets
        super().visit_Assign(node)

    def visit_Call(self, node: ast.Call) -> None:
        self._read_texts(texts.in_call(node, self._value))
        super().visit_Call(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._read_texts(texts.in_percent(node, self._value))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        self._read_texts(texts.in_comparison(node, self._value))
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._read_texts(texts.in_attribute(node, self._value))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if texts.is_scope(node.value, self._value) and not isinstance(node.ctx, ast.Load):
            self.explained.add(id(node.value))
            self.star = True  # it binds names that cannot be seen
        else:
            self._read_texts(texts.in_subscript(node, self._value))
        self.generic_visit(node)

    def _value(self, node: ast.expr) -> object:
        return value_of(node, self._named)

    def _named(self, name: str) -> object:
        if name in self.ever or name in self._own_texts:
            return self._own_texts.get(name)
        return self.values.get(name)

    @cached_property
    def _own_texts(self) -> dict[str, object]:
        return own_texts(self.statements) | dict.fromkeys(
            main_module.names_in(self.statements), sys.modules[main_module.MAIN]
        )

    def _is_local(self, node: ast.AST) -> bool:
        """Return whether `locals()` or `vars()` gives a function's own names."""
        match node:
            case ast.Call(func=ast.Name(id="locals" | "vars"), args=[]):
                return self.scopes[-1] is not self.module
        return False

    def _read_texts(self, reading: texts.TextReading | None) -> None:
        if reading is None:
            return
        self.explained.update(map(id, reading.used))
        if reading.unknown:
            self.unknown.add(reading.unknown)
        self.star = self.star or reading.binds or bool(reading.unknown)
        with self._set(guarded=True, in_text=True):
            for name in sorted(reading.names):
                self._read(name)
            for code in reading.code:
                self._read_code(code)

    def _read_code(self, code: str) -> None:
        try:
            statements = ast.parse(code).body
        except (SyntaxError, ValueError):
            return  # it fails in the notebook too
        self._block(statements)
