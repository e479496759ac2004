"""Reading and binding names by Python's scoping rules, while walking code in the order it runs."""

# ast.NodeVisitor names the methods, and says what they are for.
# ruff: noqa: D102, N815

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from jupyter_autotrain.capture.syntax import texts
from jupyter_autotrain.capture.syntax.nodes import names_in, written_text
from jupyter_autotrain.capture.syntax.scopes import (
    Comprehension,
    Function,
    Scope,
    bound_by,
    declared_global,
    defaults_of,
    own_names,
    own_texts,
    parameters_of,
)


class ScopeWalker(ast.NodeVisitor):
    """A walker through everything but statements with branches.

    Args:
        statements: The module-level statements to walk.
        lazy_annotations: True under `from __future__ import annotations`.
        values: What the notebook binds.
    """

    def __init__(self, statements: Sequence[ast.stmt], lazy_annotations: bool, values: Mapping[str, object]) -> None:
        self.statements = statements
        self.unknown = set[str]()
        self._values = values
        self._own_texts: dict[str, object] | None = None
        self._explained = set[int]()
        self.lazy_annotations = lazy_annotations
        self.module = Scope("module")
        self.scopes = [self.module]
        self._nodes = [node for statement in statements for node in ast.walk(statement)]
        self.sets = {name for node in self._nodes if isinstance(node, ast.Global) for name in node.names}
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

    # Names in texts

    def visit(self, node: ast.AST) -> None:
        """Read the names in texts, then the node itself."""
        found = texts.reading(node, self._known)
        if found is not None:
            self._read_text(found)
        elif isinstance(node, ast.Assign) and texts.is_main(node.value, self._known):
            self._explained.add(id(node.value))  # what reads names is the name that it gets
        elif texts.is_scope(node, self._known) or texts.is_main(node, self._known):
            self._read_all(node)
        super().visit(node)

    def _read_text(self, found: texts.TextReading) -> None:
        for part in found.used:
            self._explained.update(map(id, ast.walk(part)))
        if found.unknown:
            self.unknown.add(found.unknown)
        self.star = self.star or found.binds or bool(found.unknown)
        with self._set(guarded=True, in_text=True):
            for name in sorted(found.names):
                self._read(name)

    def _read_all(self, node: ast.AST) -> None:
        """Note a use of all names at once, unless they are a function's own."""
        is_own = getattr(getattr(node, "func", None), "id", "") in {"locals", "vars"} and not getattr(node, "args", ())
        if id(node) not in self._explained and not (is_own and self.scopes[-1] is not self.module):
            self.unknown.add(ast.unparse(node))
        self._explained.update(map(id, ast.walk(node)))

    def _known(self, node: ast.expr) -> object:
        return texts.text_of(node, self._named)

    def _named(self, name: str) -> object:
        if self._own_texts is None:
            main = sys.modules[texts.MAIN]
            self._own_texts = own_texts(self._nodes) | dict.fromkeys(texts.names_of_main(self.statements), main)
        if name in self.ever or name in self._own_texts:
            return self._own_texts.get(name)
        return self._values.get(name)

    # Reading and binding

    def _read(self, name: str) -> None:
        if self._is_local(name):
            return
        self._walk_pending(name)
        if name in self.module.bound or name == "__class__":
            return
        if self.in_hint:
            self.hints.add(name)
            return
        (self.deferred if self.is_deferred else self.eager).add(name)
        (self.texts if self.in_text else self.plain).add(name)
        self._note_certainty(name)

    def _note_certainty(self, name: str) -> None:
        if name in self.ever or self.guarded or self.star:
            self.optional.add(name)
        if not self.may_not_run:
            self.certain.add(name)
        if name not in self.maybe_bound:
            self.read_first.add(name)

    def _is_local(self, name: str) -> bool:
        for depth, scope in enumerate(reversed(self.scopes)):
            if name in scope.globals or scope is self.module:
                break
            if name in scope.bound and (depth == 0 or scope.kind == "function"):
                return True
        return False

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
        self._visit_all(*defaults_of(node))
        for parameter in parameters_of(node):
            self._hint(parameter.annotation, lazy=self.lazy_annotations)
        self._hint(node.returns, lazy=self.lazy_annotations)
        self._bind(node.name)
        self._later(node, node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_all(*defaults_of(node))
        with self._inside(Scope("function", own_names(node))), self._set(may_not_run=True):
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
            self.called |= names_in(decorator)
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
        scope = Scope("function", own_names(node), declared_global(body))
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
            if text := written_text(part):
                self._text_hint(text)

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
            self._visit_all(*defaults_of(value))
            self._bind(target.id)
            self._later(value, target.id)
        else:
            self._visit_all(value, *targets)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name | ast.Attribute):
            self.called |= names_in(node.func)
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

    visit_SetComp = visit_ListComp
    visit_DictComp = visit_ListComp
    visit_GeneratorExp = visit_ListComp

    def _block(self, statements: Iterable[ast.stmt]) -> None:
        self._visit_all(*statements)

    def _visit_all(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)
