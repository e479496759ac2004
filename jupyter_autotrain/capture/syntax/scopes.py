"""The names that a block of statements binds, by Python's scoping rules."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(slots=True)
class Scope:
    """The names that a module, class or function has bound so far (a function: all that it ever binds)."""

    kind: Literal["module", "class", "function"]
    bound: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)


def bound_by(statements: Iterable[ast.AST]) -> set[str]:
    """Return the names that these statements bind in their own scope.

    Names that they declare global or nonlocal are not among them.
    """
    names = set[str]()
    declared = set[str]()
    todo = list(statements)
    while todo:
        node = todo.pop()
        names.update(_bound_here(node))
        if isinstance(node, ast.Global | ast.Nonlocal):
            declared.update(node.names)
        todo += _in_same_scope(node)
    return names - declared


def declared_global(statements: Iterable[ast.AST]) -> set[str]:
    """Return the names that these statements declare `global` in their own scope."""
    names = set[str]()
    todo = list(statements)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Global):
            names.update(node.names)
        todo += _in_same_scope(node)
    return names


def _bound_here(node: ast.AST) -> Iterable[str]:
    """Return the names that this very node binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            return (name,)
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return (name,)
        case ast.Import() | ast.ImportFrom():
            return imported_names(node)
    return ()


def _in_same_scope(node: ast.AST) -> Iterable[ast.AST]:
    """Return the parts of a node that run in the scope around it."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return [*getattr(node, "decorator_list", ()), *defaults_of(node)]
        case ast.ClassDef():
            return [*node.decorator_list, *node.bases, *node.keywords]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [part for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]
    return ast.iter_child_nodes(node)


def parameters_of(node: Function | ast.Lambda) -> list[ast.arg]:
    """Return the parameters of a function."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return list(filter(None, every))


def defaults_of(node: Function | ast.Lambda) -> list[ast.expr]:
    """Return the defaults of a function's parameters."""
    return [*node.args.defaults, *filter(None, node.args.kw_defaults)]


def own_names(node: Function | ast.Lambda) -> set[str]:
    """Return the variables of a function: its parameters, and the names that its body binds."""
    body: Sequence[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else node.body
    return bound_by(body) | {parameter.arg for parameter in parameters_of(node)}


def imported_names(node: ast.AST) -> Mapping[str, str]:
    """Return the names that an import statement binds, each with its full name; "" for one of this package.

    `import a.b` binds `a`. The names of `from module import *` are read from the loaded module.
    """
    match node:
        case ast.Import(names=aliases):
            return {imported_name(one): one.name if one.asname else imported_name(one) for one in aliases}
        case ast.ImportFrom(module=module, names=[ast.alias(name="*")]):
            return {name: f"{module}.{name}" for name in _star_names(module)}
        case ast.ImportFrom(level=0, module=module, names=aliases):
            return {imported_name(one): f"{module}.{one.name}" for one in aliases}
        case ast.ImportFrom(names=aliases):
            return dict.fromkeys(map(imported_name, aliases), "")
    return {}


def imported_name(alias: ast.alias) -> str:
    """Return the name that an import binds: `import a.b` binds `a`."""
    return alias.asname or alias.name.partition(".")[0]


def is_special(name: str) -> bool:
    """Tell whether a name is one such as `__name__`, which Python binds itself.

    `__` alone is IPython's last result but one.
    """
    return name.startswith("__") and name.endswith("__") and name.strip("_") != ""


def _star_names(module: str | None) -> list[str]:
    """Return the names that `from module import *` binds; none when the module is not loaded."""
    loaded = vars(sys.modules.get(module or "", object))
    public = filter(lambda name: not name.startswith("_"), loaded) if module in sys.modules else ()
    return list(loaded.get("__all__", public))


def own_texts(nodes: Iterable[ast.AST]) -> dict[str, object]:
    """Return the names that these nodes bind once, to a text that is written out, with that text."""
    times = Counter[str]()
    texts: dict[str, object] = {}
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                times[name] += 1
            case ast.Assign(targets=targets, value=ast.Constant(value=str(text))):
                texts |= {target.id: text for target in targets if isinstance(target, ast.Name)}
    return {name: text for name, text in texts.items() if times[name] == 1}
