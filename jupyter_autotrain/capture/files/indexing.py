"""Fills a `Program` from the texts of the script and of the modules that travel with it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from jupyter_autotrain.capture.files.program import Program, ProgramScope, Source, called, called_as

_ADDS = frozenset({"add", "append", "extend", "insert", "update"})


def index(sources: Iterable[Source]) -> Program:
    """Read the code; the script comes first."""
    program = Program()
    for source in sources:
        program.modules[source.module] = ProgramScope(source)
        program.imports[source] = {}
    for scope in program.modules.values():
        _Indexer(program, scope).visit_body(scope.source.tree.body)
    program.finish()
    return program


class _Indexer(ast.NodeVisitor):
    """Fills the index from one text."""

    def __init__(self, program: Program, scope: ProgramScope, owner: ast.ClassDef | None = None) -> None:
        self.program = program
        self.scope = scope
        self.owner = owner

    def visit_body(self, body: Iterable[ast.AST]) -> None:
        for node in body:
            self.visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.program.imports[self.scope.source][alias.asname or top] = alias.name if alias.asname else top

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        package = self.scope.source.module.split(".")
        keep = len(package) - node.level + self.scope.source.relative_path.endswith("__init__.py")
        base = ".".join([*package[:keep], *filter(None, [node.module])]) if node.level else node.module or ""
        for alias in node.names:
            self.program.imports[self.scope.source][alias.asname or alias.name] = f"{base}.{alias.name}"

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit_body([*node.decorator_list, *_defaults(node.args)])
        inner = ProgramScope(self.scope.source, self.scope, node, self.owner)
        names = {inner.name, node.name}
        for name in names:
            self.program.functions.setdefault(name, []).append(inner)
        _bind_defaults(inner, self.scope)
        _Indexer(self.program, inner).visit_body(node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        inner = ProgramScope(self.scope.source, self.scope, node)
        _bind_defaults(inner, self.scope)
        _Indexer(self.program, inner).visit(node.body)
        self.program.note_use("lambda", inner)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.program.classes[node.name] = node
        for statement in node.body:
            for target, value in _assigned(statement):
                if isinstance(target, ast.Name):
                    self.program.attributes.setdefault(target.id, []).append((value, self.scope))
        self.visit_body([*node.decorator_list, *node.bases, *node.keywords])
        _Indexer(self.program, self.scope, node).visit_body(node.body)

    def visit_If(self, node: ast.If) -> None:
        if self.scope.source.relative_path and _is_main(node.test):
            return
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.scope.returns.append(node.value)
        self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> None:
        if node.value is not None:
            self.scope.returns.append(node.value)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.program.note_use(node.id, self.scope)
            imported = self.program.imports[self.scope.source].get(node.id, "")
            self.program.note_use(imported.rpartition(".")[2], self.scope)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.program.note_use(node.attr, self.scope)
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        self._bases_init(node)
        self.program.note_call(node, self.scope)
        if called(node) in _ADDS and node.args and isinstance(node.func, ast.Attribute):
            self._bind(node.func.value, node.args[-1])
        if called(node) == "add_argument":
            self._argument(node)
        self.generic_visit(node)

    def _bases_init(self, node: ast.Call) -> None:
        """`super().__init__(...)` calls what makes the bases."""
        method = self.scope
        is_super = called(node) == "__init__" and isinstance(node.func, ast.Attribute)
        if is_super and method.owner is not None:
            for base in method.owner.bases:
                self.program.sites.setdefault(called_as(base), []).append((node, self.scope))

    def _argument(self, node: ast.Call) -> None:
        """`add_argument("--csv", default="a.csv")` of argparse makes an attribute of what is parsed."""
        default = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), None)
        flag = next((one.value for one in node.args if isinstance(one, ast.Constant)), None)
        if default is not None and isinstance(flag, str):
            name = flag.lstrip("-").replace("-", "_")
            self.program.attributes.setdefault(name, []).append((default, self.scope))

    def visit(self, node: ast.AST) -> None:
        for target, value in _assigned(node) if self.owner is None else ():
            self._bind(target, value)
        super().visit(node)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Starred):
            self._bind(target.value, value)
        elif isinstance(target, ast.Name):
            self.scope.bound.setdefault(target.id, []).append((value, self.scope))
        elif isinstance(target, ast.Attribute):
            self.program.attributes.setdefault(target.attr, []).append((value, self.scope))
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            self.program.items.setdefault(str(target.slice.value), []).append((value, self.scope))
        elif isinstance(target, ast.Tuple | ast.List):
            same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            values = value.elts if same and isinstance(value, ast.Tuple | ast.List) else [value] * len(target.elts)
            for inner, part in zip(target.elts, values, strict=True):
                self._bind(inner, part)


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets that a node binds, each with the expression that it, or what is in it, becomes."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.AugAssign(target=ast.Name() as target, op=operator, value=value):
            read = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            yield target, ast.copy_location(ast.BinOp(read, operator, value), node)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield target, _element(value, target)
        case ast.comprehension(target=target, iter=value):
            yield target, _element(value, target)
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield target, value


def _element(value: ast.expr, target: ast.expr) -> ast.expr:
    """`*value`: what a loop over a value gives; where it is taken apart, the parts of that."""
    one = ast.copy_location(ast.Starred(value, ast.Load()), value)
    return ast.copy_location(ast.Starred(one, ast.Load()), value) if isinstance(target, ast.Tuple | ast.List) else one


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(one for one in arguments.kw_defaults if one is not None)]


def _bind_defaults(inner: ProgramScope, outer: ProgramScope) -> None:
    """Bind the parameters of a function to their defaults, which belong to the scope around it."""
    assert inner.function is not None
    arguments = inner.function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for one in (*positional, *arguments.kwonlyargs):
        inner.bound[one.arg] = []
    last = positional[len(positional) - len(arguments.defaults) :]
    for one, default in zip(last, arguments.defaults, strict=True):
        inner.bound[one.arg].append((default, outer))
    for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is not None:
            inner.bound[one.arg].append((value, outer))


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
