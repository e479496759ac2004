"""Reading and binding names by Python's scoping rules, while walking code in the order it runs."""

# ast.NodeVisitor names the methods, and says what they are for.
# ruff: noqa: D102

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from jupyter_autotrain.capture.syntax.scopes import (
    Comprehension,
    Function,
    Scope,
    arguments_of,
    bound_by,
    declared_global,
)


class ScopeWalker(ast.NodeVisitor):
    """Everything but statements with branches.

    Args:
        statements: The module-level statements to walk.
        lazy_annotations: True under `from __future__ import annotations`.
    """

    def __init__(self, statements: Sequence[ast.stmt], lazy_annotations: bool) -> None:
        self.statements = statements
        self.lazy_annotations = lazy_annotations
        self.module = Scope("module")
        self.scopes = [self.module]
        every = [node for statement in statements for node in ast.walk(statement)]
        self.sets = {name for node in every if isinstance(node, ast.Global) for name in node.names}
        self.ever = bound_by(statements) | self.sets
        self.maybe_bound = set(self.sets)
        self.waiting: dict[str, list[Callable[[], None]]] = {}
        self.owner = ""
        self.guarded = self.is_deferred = self.may_not_run = self.in_hint = self.star = False
        self.eager = set[str]()
        self.called = set[str]()
        self.deferred = set[str]()
        self.optional = set[str]()
        self.certain = set[str]()
        self.read_first = set[str]()
        self.hints = set[str]()
        self.texts = set[str]()
        self.plain = set[str]()
        self.in_text = False

    def run(self) -> None:
        """Walk everything, then the bodies that nothing has called."""
        self._block(self.statements)
        while self.waiting:
            self._walk_pending(next(iter(self.waiting)))

    # Reading and binding

    def _read(self, name: str) -> None:
        for depth, scope in enumerate(reversed(self.scopes)):
            if name in scope.globals or scope is self.module:
                break
            if name in scope.bound and (depth == 0 or scope.kind == "function"):
                return
        self._walk_pending(name)
        if name in self.module.bound or name == "__class__":
            return
        if self.in_hint:
            self.hints.add(name)
            return
        (self.deferred if self.is_deferred else self.eager).add(name)
        (self.texts if self.in_text else self.plain).add(name)
        if name in self.ever or self.guarded or self.star:
            self.optional.add(name)
        if not self.may_not_run:
            self.certain.add(name)
        if name not in self.maybe_bound:
            self.read_first.add(name)

    def _bind(self, name: str) -> None:
        scope = self.scopes[-1]
        if scope.kind == "function":
            return
        owner = self.module if name in scope.globals else scope
        owner.bound.add(name)
        if owner is self.module:
            self.maybe_bound.add(name)

    def _walk_pending(self, name: str) -> None:
        """Walk the bodies that may run when `name` is read."""
        for body in self.waiting.pop(name, ()):
            body()

    @contextmanager
    def _set(self, **flags: object) -> Iterator[None]:
        before = {name: getattr(self, name) for name in flags}
        for name, value in flags.items():
            setattr(self, name, value)
        yield
        for name, value in before.items():
            setattr(self, name, value)

    @contextmanager
    def _inside(self, scope: Scope) -> Iterator[None]:
        self.scopes.append(scope)
        yield
        self.scopes.pop()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._bind(node.id)
            return
        self._read(node.id)
        if isinstance(node.ctx, ast.Del):
            self.scopes[-1].bound.discard(node.id)

    # Definitions

    def visit_FunctionDef(self, node: Function) -> None:
        self._decorators(node.decorator_list)
        self._visit_all(*node.args.defaults, *node.args.kw_defaults)
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for annotation in [*(a.annotation for a in every if a is not None), node.returns]:
            self._hint(annotation, lazy=self.lazy_annotations)
        self._bind(node.name)
        self._later(node, node.name)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_all(*node.args.defaults, *node.args.kw_defaults)
        with self._inside(Scope("function", arguments_of(node))), self._set(may_not_run=True):
            self.visit(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._decorators(node.decorator_list)
        self._visit_all(*node.bases, *node.keywords)
        owner = self.owner or (node.name if len(self.scopes) == 1 else "")
        scope = Scope("class", globals=declared_global(node.body))
        with self._inside(scope), self._set(owner=owner):
            self._block(node.body)
        self._bind(node.name)

    def _decorators(self, decorators: list[ast.expr]) -> None:
        for decorator in decorators:
            self.called.update(part.id for part in ast.walk(decorator) if isinstance(part, ast.Name))
            self.visit(decorator)

    def _later(self, node: Function | ast.Lambda, name: str) -> None:
        """Walk a body when its function, or the class it belongs to, is first read."""
        scopes = list(self.scopes)

        def body() -> None:
            with self._set(scopes=scopes, is_deferred=True, may_not_run=False, owner=""):
                self._function_body(node)

        if any(scope.kind == "function" for scope in scopes):
            self._function_body(node)
        else:
            self.waiting.setdefault(self.owner or name, []).append(body)

    def _function_body(self, node: Function | ast.Lambda) -> None:
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        scope = Scope("function", arguments_of(node) | bound_by(body), declared_global(body))
        with self._inside(scope):
            self._visit_all(*body)

    # Annotations

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        is_local = self.scopes[-1].kind == "function"
        self._hint(node.annotation, lazy=self.lazy_annotations or is_local)
        if node.value is not None:
            self._assign([node.target], node.value)
        elif not isinstance(node.target, ast.Name):
            self.visit(node.target)

    def _hint(self, annotation: ast.expr | None, *, lazy: bool) -> None:
        if annotation is None:
            return
        with self._set(in_hint=lazy or self.in_hint):
            self.visit(annotation)
        for part in ast.walk(annotation):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                self._text_hint(part.value)

    def _text_hint(self, text: str) -> None:
        try:
            expression = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            return  # such as a word in Literal[...]: no type
        self._hint(expression, lazy=True)

    # Assignments and expressions

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assign(node.targets, node.value)

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        target = targets[0]
        if isinstance(value, ast.Lambda) and len(targets) == 1 and isinstance(target, ast.Name):
            self._visit_all(*value.args.defaults, *value.args.kw_defaults)
            self._bind(target.id)
            self._later(value, target.id)
        else:
            self._visit_all(value, *targets)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name):
            self.called.add(node.func.id)
        elif isinstance(node.func, ast.Attribute):
            self.called.update(part.id for part in ast.walk(node.func) if isinstance(part, ast.Name))
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        name = node.target.id
        if any(name in scope.bound for scope in self.scopes if scope.kind == "function"):
            return
        self.module.bound.add(name)

    def visit_ListComp(self, node: Comprehension) -> None:
        first = node.generators[0]
        self.visit(first.iter)
        with self._inside(Scope("function", bound_by(generator.target for generator in node.generators))):
            self._visit_all(*first.ifs)
            for generator in node.generators[1:]:
                self._visit_all(generator.iter, *generator.ifs)
            self._visit_all(*([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]))

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self.visit_ListComp(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self.visit_ListComp(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self.visit_ListComp(node)

    def _block(self, statements: Iterable[ast.stmt]) -> None:
        self._visit_all(*statements)

    def _visit_all(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)
