"""The code that a trial runs, indexed: what its names are bound to, who calls whom, which modules it imports.

Nothing is known of the order in which statements run: a name is everything that it is ever bound to.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_CALLS_ITS_ARGUMENT = frozenset(
    {"apply", "apply_async", "imap", "imap_unordered", "map", "partial", "starmap", "submit"}
)


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """One text of code: the script, or a module that travels with it.

    Attributes:
        tree: The code, parsed.
        relative_path: Where it is in the trial's folder; "" for the script.
        root: The folder here that holds what lies in the trial's folder; None for the script.
    """

    tree: ast.Module
    relative_path: str = ""
    root: Path | None = None

    @property
    def module(self) -> str:
        """Its dotted name, as other code imports it."""
        return self.relative_path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@dataclass(eq=False, slots=True)
class ProgramScope:
    """The names of a module or a function.

    Attributes:
        source: The text it belongs to.
        parent: The scope around it; None for a module's.
        function: The function whose names they are; None for a module's.
        owner: The class whose method the function is.
        bound: What each name is bound to, each with the scope to read it in.
        returns: What the function gives.
    """

    source: Source
    parent: ProgramScope | None = None
    function: FunctionNode | None = None
    owner: ast.ClassDef | None = None
    bound: dict[str, list[BoundExpression]] = field(default_factory=dict)
    returns: list[ast.expr] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What calls of the function name: of `__init__` the class."""
        own = getattr(self.function, "name", "")
        return self.owner.name if self.owner and own == "__init__" else own

    @property
    def is_method(self) -> bool:
        """Whether its first parameter is filled by the object."""
        decorators = {ast.unparse(one) for one in getattr(self.function, "decorator_list", ())}
        return self.owner is not None and "staticmethod" not in decorators


BoundExpression = tuple[ast.expr, ProgramScope]
CallSite = tuple[ast.Call, ProgramScope]


class Program:
    """The index of the script and of the modules that travel with it; `indexing.index` fills it.

    Attributes:
        modules: The names of each text, by its dotted name; "" for the script.
        functions: By name; a constructor has that of its class too.
        classes: By name.
        attributes: What is set as an attribute of anything, by its name.
        items: What is set as an item of anything, by its key.
        calls: All calls.
        sites: The calls by the last part of what they name.
        imports: What each imported name stands for, dotted, for each text.
        live: The scopes that may run.
    """

    def __init__(self) -> None:
        self.modules: dict[str, ProgramScope] = {}
        self.functions: dict[str, list[ProgramScope]] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.attributes: dict[str, list[BoundExpression]] = {}
        self.items: dict[str, list[BoundExpression]] = {}
        self.calls: list[CallSite] = []
        self.sites: dict[str, list[CallSite]] = {}
        self.imports: dict[Source, dict[str, str]] = {}
        self.live: set[ProgramScope] = set()
        self._used: dict[ProgramScope, set[str]] = {}

    def finish(self) -> None:
        """Link what needs the whole code to be indexed."""
        self._link_constructors()
        self.live = self._live()

    def dotted(self, node: ast.expr, source: Source) -> str:
        """What an expression such as `np.load` is called where it is imported from: `numpy.load`; "" for others."""
        if isinstance(node, ast.Name):
            return self.imports[source].get(node.id, "")
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value, source)
            return f"{owner}.{node.attr}" if owner else ""
        return ""

    def own(self, dotted: str) -> bool:
        """Whether an imported name is of one of these modules."""
        parts = dotted.split(".")
        return any(".".join(parts[:many]) in self.modules for many in range(1, len(parts) + 1))

    def function(self, call: ast.Call, scope: ProgramScope) -> list[ProgramScope]:
        """The functions among this code that a call may mean."""
        name = called(call)
        dotted = self.dotted(call.func, scope.source)
        if dotted and not self.own(dotted):
            return []
        return self.functions.get(dotted.rpartition(".")[2] or name, [])

    def note_call(self, call: ast.Call, scope: ProgramScope) -> None:
        """Keep a call by the name of what it calls; a function that is passed on is called with its neighbours."""
        self.calls.append((call, scope))
        dotted = self.dotted(call.func, scope.source)
        if not dotted or self.own(dotted):
            self.sites.setdefault(dotted.rpartition(".")[2] or called(call), []).append((call, scope))
        if called(call) in _CALLS_ITS_ARGUMENT and call.args and isinstance(call.args[0], ast.Name | ast.Attribute):
            owner = [call.func.value] if called(call) == "apply" and isinstance(call.func, ast.Attribute) else []
            handed = ast.copy_location(ast.Call(call.args[0], [*owner, *call.args[1:]], call.keywords), call)
            name = self.dotted(call.args[0], scope.source).rpartition(".")[2] or called(handed)
            self.sites.setdefault(name, []).append((handed, scope))

    def note_use(self, name: str, scope: ProgramScope) -> None:
        """Keep that some code reads a name or an attribute."""
        self._used.setdefault(scope, set()).add(name)

    def _link_constructors(self) -> None:
        """A class without `__init__` is made by that of its base."""
        for name, node in self.classes.items():
            if name not in self.functions:
                for base in node.bases:
                    self.sites.setdefault(called_as(base), []).extend(self.sites.get(name, ()))

    def _live(self) -> set[ProgramScope]:
        """The scopes that may run: those whose names are read by code that may run."""
        scopes = [scope for found in self.functions.values() for scope in found]
        live = {scope for scope in self._used if scope.function is None} | set(self.modules.values())
        while True:
            used = set().union(*(self._used.get(scope, ()) for scope in live))
            fresh = {s for s in scopes if s not in live and _reached(s, used, live)}
            fresh |= {s for s in self._used if s not in live and s.parent in live and not s.name}
            if not fresh:
                return live
            live |= fresh


def _reached(scope: ProgramScope, used: set[str], live: set[ProgramScope]) -> bool:
    own = str(getattr(scope.function, "name", ""))
    if scope.parent is not None and scope.parent not in live:
        return False
    special = own.startswith("__") and own.endswith("__")
    return own in used or (
        special and (scope.owner is None or scope.owner.name in used or scope.source.relative_path == "")
    )


def called(call: ast.Call) -> str:
    """The last part of what a call names."""
    return called_as(call.func)


def called_as(node: ast.expr) -> str:
    """The last part of a dotted name."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
