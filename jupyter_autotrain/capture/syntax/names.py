"""The names that a piece of code needs from outside, and the time when it needs them.

The walk follows the order of execution: a name read before it is bound is needed. The body of a function runs
when the function is first read, not where it is defined, so that a cell's own later bindings count.
"""

# ast.NodeVisitor names the methods.
# ruff: noqa: N802, N815

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from jupyter_autotrain.capture.syntax.nodes import names_in
from jupyter_autotrain.capture.syntax.scopes import bound_by, imported_names
from jupyter_autotrain.capture.syntax.scoping import ScopeWalker

_NO_VALUES: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Names:
    """The names that some statements need and bind.

    Attributes:
        eager: Read while the statements run.
        called: Those of `eager` that may be called meanwhile (decorators, calls).
        deferred: Read when something that the statements define is called.
        optional: Needed names that may be missing: bound later here, or guarded.
        uncertain: Needed names that only a lambda or a branch reads, which may never run.
        hints: Read only by annotations that Python does not evaluate.
        binds: Bound somewhere here.
        sets: Module-level names that functions among them assign by `global`.
        texts: Those of `needed` that only texts name, such as that of `df.query(...)`: they may be missing.
        unknown: Calls that read names by texts that are not known here.
        rebound: Those of `needed` that a branch or loop may have bound here before each place that reads them.
        binds_unseen: Whether names are bound that cannot be seen, such as by `globals()[name] = 1`.
    """

    eager: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    deferred: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    uncertain: frozenset[str] = frozenset()
    hints: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    rebound: frozenset[str] = frozenset()
    binds_unseen: bool = False

    @property
    def needed(self) -> frozenset[str]:
        """The names that must exist."""
        return self.eager | self.deferred


def analyse(
    statements: Sequence[ast.stmt], *, lazy_annotations: bool = False, values: Mapping[str, object] = _NO_VALUES
) -> Names:
    """Find the names that module-level statements need.

    Args:
        statements: What runs, in order.
        lazy_annotations: True under `from __future__ import annotations`.
        values: What the notebook binds, to know the texts of calls that read names.
    """
    walker = _Walker(statements, lazy_annotations, values)
    walker.run()
    return Names(
        eager=frozenset(walker.eager),
        called=frozenset(walker.called & walker.eager),
        deferred=frozenset(walker.deferred),
        optional=frozenset(walker.optional),
        uncertain=frozenset((walker.eager | walker.deferred) - walker.certain),
        hints=frozenset(walker.hints - walker.eager - walker.deferred),
        binds=frozenset(walker.ever | walker.maybe_bound),
        sets=frozenset(walker.sets),
        texts=frozenset(walker.texts - walker.plain),
        unknown=frozenset(walker.unknown),
        rebound=frozenset((walker.eager | walker.deferred) - walker.read_first),
        binds_unseen=walker.star,
    )


class _Walker(ScopeWalker):
    """Statements, in the order they run; what only some branches bind is not bound for certain."""

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._read(node.target.id)
        self._visit_all(node.value, node.target)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        names = imported_names(node)
        self.star = self.star or not names  # all names of a module that is not loaded
        for name in names:
            self._bind(name)

    visit_ImportFrom = visit_Import

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        with self._set(may_not_run=True):
            self._branches(lambda: self._block(node.body), lambda: self._block(node.orelse))

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        with self._set(may_not_run=True):
            self._branches(lambda: self.visit(node.body), lambda: self.visit(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit(node.values[0])
        with self._set(may_not_run=True):
            self._branches(lambda: self._visit_all(*node.values[1:]), lambda: None)

    def visit_Assert(self, node: ast.Assert) -> None:
        self.visit(node.test)
        with self._set(may_not_run=True):
            self._visit_all(node.msg)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._branches(lambda: self._visit_all(node.target, *node.body), lambda: None)
        self._block(node.orelse)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._branches(lambda: self._block(node.body), lambda: None)
        self._block(node.orelse)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        forgives = any(map(_catches_missing_names, node.handlers))

        def attempt() -> None:
            with self._set(guarded=self.guarded or forgives):
                self._block(node.body)
            self._block(node.orelse)

        handlers = [lambda handler=handler: self._handler(handler) for handler in node.handlers]
        self._branches(attempt, *handlers)
        self._block(node.finalbody)

    visit_TryStar = visit_Try

    def _handler(self, node: ast.ExceptHandler) -> None:
        if node.type:
            self.visit(node.type)
        if node.name:
            self._bind(node.name)
        with self._set(may_not_run=True):
            self._block(node.body)
        if node.name:
            self.scopes[-1].bound.discard(node.name) if self.scopes[-1].kind != "function" else None

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        exhaustive = any(isinstance(c.pattern, ast.MatchAs) and c.pattern.pattern is None for c in node.cases)
        cases = [lambda case=case: self._case(case) for case in node.cases]
        self._branches(*cases, *([] if exhaustive else [lambda: None]))

    def _case(self, node: ast.match_case) -> None:
        for name in bound_by([node.pattern]):
            self._bind(name)
        with self._set(may_not_run=True):
            self._visit_all(node.pattern, node.guard, *node.body)

    def _branches(self, *branches: Callable[[], None]) -> None:
        """Walk alternatives; only what each of them binds is bound for certain."""
        before = set(self.module.bound)
        outcomes = list[set[str]]()
        for branch in branches:
            self.module.bound = set(before)
            branch()
            outcomes.append(self.module.bound)
        self.module.bound = set.intersection(*outcomes)


def _catches_missing_names(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return not names_in(handler.type).isdisjoint({"NameError", "Exception", "BaseException"})
