"""The modules that a cell imports before it does anything else, read from its script, which is not run.

The files that a process has loaded are compared with those on the disk: an upgrade renews the process.
"""

from __future__ import annotations

import ast
import os
import sys
import time
from collections.abc import Iterator, Sequence

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.pool.import_process import installed_folders

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
            for alias in statement.names:
                if _top(alias.name) not in _NEVER | _THERE:
                    yield alias.name
        elif isinstance(statement, ast.ImportFrom):
            yield from _of_import_from(statement)
        elif isinstance(statement, ast.Try):
            yield from _of_statements(statement.body)


def _of_import_from(statement: ast.ImportFrom) -> Iterator[str]:
    module = statement.module or ""
    if statement.level or _top(module) in _NEVER | _THERE:
        return
    yield module
    for alias in statement.names:
        if alias.name != "*":
            yield f"{module}:{alias.name}"


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


_LOOK_AFTER_S = 0.2  # a look at the files of torch and pandas takes some milliseconds


class LoadedFiles:
    """The files of all loaded modules and the names of what is installed, as they are now."""

    def __init__(self) -> None:
        files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        paths = {path for path in [*files, sys.executable] if isinstance(path, str)}
        self._paths = "\n".join(paths)  # one text: a look at many would copy the memory shared with trials
        self._seen = self._look()
        self._looked_s = float("-inf")

    def are_current(self) -> bool:
        """Tell whether none has changed; a change may be seen 0.2 s later."""
        if time.monotonic() - self._looked_s < _LOOK_AFTER_S:
            return True
        self._looked_s = time.monotonic()
        return self._look() == self._seen

    def _look(self) -> int:
        return hash((*map(_stamp, self._paths.split("\n")), *_installed()))


def _stamp(path: str) -> tuple[int, ...]:
    """Return when a file was written, its size and its number; nothing where it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _installed() -> list[str]:
    """Return, in order, the names of distributions and of the files that add folders to the search path."""
    found: set[str] = set()
    for folder in installed_folders():
        names = os.listdir(folder) if os.path.isdir(folder) else []
        found.update(f"{folder}{name}" for name in names if name.endswith((".dist-info", ".egg-info", ".pth")))
    return sorted(found)
