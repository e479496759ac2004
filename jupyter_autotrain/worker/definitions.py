"""The part of a cell's script that defines things, told from the part that does things."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence

from jupyter_autotrain.worker import api

_DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OURS = {"__autotrain_data__", "__autotrain_override__"}


def define(names: dict[str, object]) -> None:
    """Give a namespace what a cell defines, in a process that the cell started.

    A definition that needs something the cell only has at run time is left out.
    """
    trial = api.context()
    if trial is None:
        return
    names.update(trial.names())
    names["__autotrain_override__"] = trial.params.get  # without words: the trial's first process has said it
    with open(trial.script, encoding="utf-8") as file:
        tree = ast.parse(file.read(), trial.script)
    for statement in select(tree.body):
        code = compile(ast.Module([statement], []), trial.script, "exec", dont_inherit=True)
        with contextlib.suppress(Exception):
            exec(code, names)  # noqa: S102 - the user's cell, in the user's process


def select(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that define: imports, functions, classes, and assignments that call nothing."""
    return [statement for statement in statements if _defines(statement)]


def _defines(statement: ast.stmt) -> bool:
    if isinstance(statement, _DEFINES):
        return True
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return not _acts(statement)
    if isinstance(statement, ast.If):
        return not _acts(statement.test) and all(map(_defines, statement.body + statement.orelse))
    if isinstance(statement, ast.Try):
        parts = [
            *statement.body,
            *statement.orelse,
            *statement.finalbody,
            *(s for h in statement.handlers for s in h.body),
        ]
        return all(map(_defines, parts))
    return False


def _acts(node: ast.AST) -> bool:
    """True when evaluating it calls or awaits something other than our own loaders."""
    return any(
        isinstance(part, ast.Await)
        or (isinstance(part, ast.Call) and not (isinstance(part.func, ast.Name) and part.func.id in _OURS))
        for part in ast.walk(node)
    )
