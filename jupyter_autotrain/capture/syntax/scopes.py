"""Which names a block of statements binds, by Python's scoping rules."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(slots=True)
class Scope:
    """What a module, class or function has bound so far (a function: all that it ever binds)."""

    kind: Literal["module", "class", "function"]
    bound: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)


def bound_by(statements: Iterable[ast.AST]) -> set[str]:
    """Names these statements bind in their own scope; names they declare global or nonlocal are not among them."""
    binder = _Binder()
    for statement in statements:
        binder.visit(statement)
    return binder.names - binder.declared


def declared_global(statements: Iterable[ast.AST]) -> set[str]:
    """Names these statements declare `global` in their own scope."""
    binder = _Binder()
    for statement in statements:
        binder.visit(statement)
    return binder.globals


def arguments_of(node: Function | ast.Lambda) -> set[str]:
    """The parameter names of a function."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {argument.arg for argument in every if argument is not None}


def imported_name(alias: ast.alias) -> str:
    """The name an import binds: `import a.b` binds `a`."""
    return alias.asname or alias.name.partition(".")[0]


def is_special(name: str) -> bool:
    """True for names such as `__name__`, which Python binds itself; `__` alone is IPython's last result but one."""
    return name.startswith("__") and name.endswith("__") and name.strip("_") != ""


def star_names(module: str | None) -> set[str] | None:
    """What `from module import *` binds, read from the loaded module; None when it is not loaded."""
    loaded = sys.modules.get(module or "")
    if loaded is None:
        return None
    public = getattr(loaded, "__all__", None)
    return set(public) if public is not None else {name for name in vars(loaded) if not name.startswith("_")}


def own_texts(statements: Iterable[ast.stmt]) -> dict[str, object]:
    """Names that these statements bind once, to a text that is written out."""
    stores = [part for one in statements for part in ast.walk(one) if isinstance(part, ast.Assign | ast.Name)]
    bound = [part.id for part in stores if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    found: dict[str, object] = {}
    for part in stores:
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str):
            names = [target.id for target in part.targets if isinstance(target, ast.Name)]
            found |= {name: part.value.value for name in names if bound.count(name) == 1}
    return found


class _Binder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.globals: set[str] = set()
        self.declared: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del):
            self.names.add(node.id)

    def visit_FunctionDef(self, node: Function) -> None:
        self.names.add(node.name)
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.add(node.name)
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)

    def visit_Import(self, node: ast.Import) -> None:
        self.names.update(imported_name(alias) for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.names[0].name == "*":
            self.names.update(star_names(node.module) or ())
        else:
            self.names.update(imported_name(alias) for alias in node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._capture(node, node.name)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._capture(node, node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self._capture(node, node.rest)

    def visit_Global(self, node: ast.Global) -> None:
        self.globals.update(node.names)
        self.declared.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.declared.update(node.names)

    def visit_ListComp(self, node: Comprehension) -> None:
        # Its targets are its own; only a walrus inside binds out here.
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name):
                self.names.add(part.target.id)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self.visit_ListComp(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self.visit_ListComp(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self.visit_ListComp(node)

    def _capture(self, node: ast.AST, name: str | None) -> None:
        if name:
            self.names.add(name)
        self.generic_visit(node)
