"""The statements of a cell that define things, for processes that must not run the other ones."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from jupyter_autotrain.agent.ranks import api
from jupyter_autotrain.agent.ranks.failure import script_of_bundle

_DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MOST_CHARACTERS = 200  # of a statement, and of an exception's message
_OURS = {"__autotrain_data__", "__autotrain_override__"}


def define(names: dict[str, object]) -> None:
    """Give a namespace all that a cell defines, in a process that the cell started.

    A definition that fails is left out, with a note in the trial's log. Often it needs a value that only the running
    cell has; that is no fault, so its note is no warning.
    """
    trial = api.context()
    if trial is None:
        return
    names.update(trial.names())
    names["__autotrain_override__"] = trial.params.get  # prints nothing: the trial's first process has done so
    with open(trial.script, encoding="utf-8") as file:
        tree = ast.parse(file.read(), trial.script)
    missing = _bound([statement for statement in tree.body if not _defines(statement)])
    for statement in select(tree.body):
        code = compile(ast.Module([statement], []), trial.script, "exec", dont_inherit=True)
        try:
            exec(code, names)  # noqa: S102 - the user's cell, in the user's process
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything
            _note(trial, statement, error, is_expected=isinstance(error, NameError) and error.name in missing)
            missing |= _bound([statement])


def _bound(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the names that statements may bind, those inside functions and classes included."""
    found: set[str] = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).partition(".")[0])
    return found


def _note(trial: api.TrialContext, statement: ast.stmt, error: Exception, *, is_expected: bool) -> None:
    script = script_of_bundle(trial.script, str(trial.trial["bundle"]))
    where = script.place(trial.script, statement.lineno)
    first_line = ast.unparse(statement).partition("\n")[0]
    found = f"{where}: `{first_line[:_MOST_CHARACTERS]}` is not defined in the processes that this trial starts"
    if is_expected:
        trial.note_once("info", f"{found}: it needs {error.name!r}, which only the running cell has.")  # type: ignore[attr-defined] # a NameError
        return
    reason = f"{type(error).__name__}: {' '.join(str(error).split())[:_MOST_CHARACTERS]}"
    trial.note_once(
        "warning", f"{found} ({reason}). Move it to a module beside the notebook, or pass its value to them."
    )


def select(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that define: imports, functions, classes, and assignments that call nothing."""
    return list(filter(_defines, statements))


def _defines(statement: ast.stmt) -> bool:
    if isinstance(statement, _DEFINES):
        return True
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return not _acts(statement)
    if isinstance(statement, ast.If):
        return not _acts(statement.test) and all(map(_defines, statement.body + statement.orelse))
    if isinstance(statement, ast.Try):
        parts = [*statement.body, *statement.orelse, *statement.finalbody]
        for handler in statement.handlers:
            parts.extend(handler.body)
        return all(map(_defines, parts))
    return False


def _acts(node: ast.AST) -> bool:
    """Tell whether evaluating a node calls or awaits something other than our own loaders."""
    return any(
        isinstance(part, ast.Await)
        or (isinstance(part, ast.Call) and not (isinstance(part.func, ast.Name) and part.func.id in _OURS))
        for part in ast.walk(node)
    )
