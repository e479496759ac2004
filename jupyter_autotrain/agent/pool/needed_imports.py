"""The modules that a cell imports before it does anything else, read from its script, which is not run."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence

from jupyter_autotrain.agent import files

_NEVER = frozenset({"__future__", "__main__", "jupyter_autotrain"})
_THERE = frozenset(  # in any process that trials are forked from
    {
        "collections",
        "contextlib",
        "functools",
        "io",
        "itertools",
        "json",
        "os",
        "pathlib",
        "random",
        "re",
        "signal",
        "sys",
    }
    | {"threading", "time"}
)


def of_script(script: str, folder: str) -> list[str]:
    """Return what a script imports at its top level, in order, also by the modules that travel with it.

    What a condition or a function imports is left out: it may never be needed. A name is `a.b`, or `a:b` where `b` of
    `import b from a` may be a module or something in one.

    Args:
        script: The path of the script.
        folder: The folder of the modules that travel with it.
    """
    found: dict[str, None] = {}
    seen = set[str]()
    todo = [script]
    while todo:
        path = todo.pop(0)
        seen.add(path)
        for name in _imported(path):
            own = _files_of(name.partition(":")[0], folder)
            found.update({} if own else {name: None})
            todo += [file for file in own if file not in seen]
    return list(found)


def _imported(path: str) -> Iterator[str]:
    try:
        with files.open_regular(*os.path.split(path)) as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return  # the trial tells of it
    yield from _of_statements(tree.body)


def _of_statements(statements: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names if _top(alias.name) not in _NEVER | _THERE)
        elif isinstance(statement, ast.ImportFrom):
            yield from _of_import_from(statement)
        elif isinstance(statement, ast.Try):
            yield from _of_statements(statement.body)


def _of_import_from(statement: ast.ImportFrom) -> Iterator[str]:
    module = statement.module or ""
    if statement.level or _top(module) in _NEVER | _THERE:
        return
    yield module
    yield from (f"{module}:{alias.name}" for alias in statement.names if alias.name != "*")


def _top(name: str) -> str:
    return name.partition(".")[0]


def _files_of(name: str, folder: str) -> list[str]:
    """Return the files in a folder that importing a module runs; none where it lies elsewhere."""
    path = folder
    found = []
    for part in name.split("."):
        path = f"{path}/{part}"
        if os.path.isdir(path):
            found += [f"{path}/__init__.py"] if os.path.exists(f"{path}/__init__.py") else []
        elif os.path.exists(f"{path}.py"):
            return [*found, f"{path}.py"]
    return found
