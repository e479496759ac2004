"""Variables of the environment that this process was not started with, and those that the cell's code reads by name."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import FIRST, Item
from jupyter_autotrain.capture.state.paths import path_of
from jupyter_autotrain.capture.syntax.cells import Cell, python_tree
from jupyter_autotrain.core import environment, system
from jupyter_autotrain.core.text_format import cut

_OF_A_PLACE = (
    "PATH", "HOME", "PYTHON*", "LD_*", "VIRTUAL_ENV", "JUPYTER_*", "JPY_*", "IPYTHONDIR", "MPLBACKEND", "PYTEST_*",
    "TERM", "PAGER", "GIT_PAGER", "CLICOLOR*", "FORCE_COLOR", "PYDEVD_*",
)  # fmt: skip
"""What belongs to a machine, or is set by a kernel for what it starts."""
_SHOWN = 80


def restore_code(
    cells: Sequence[Cell], trees: Sequence[ast.Module], aliases: dict[str, str], given: Collection[str]
) -> Iterator[tuple[Item | None, Difference | None]]:
    """What sets the notebook's variables again, and the differences of those that stay here.

    A variable that the trial has already, from the header or because it is always passed on, is left as it is.

    Args:
        cells: The executed cells.
        trees: The code that travels.
        aliases: The full names of what it imports.
        given: Names and patterns of variables that the header gives.
    """
    here = dict(os.environ)
    passed = environment.passed(os.environ)
    fresh = {name: _origin(name, cells) for name in changed() if not _fits(name, (*_OF_A_PLACE, *given))}
    origins = {name: origin for name, origin in fresh.items() if origin}
    secret = set(environment.held_back(here, origins))
    for name in sorted(secret & set(origins)):
        yield None, Difference(DifferenceKind.NOT_CARRIED, _ask_for(name, is_secret=True), origins[name])
    values = {name: here[name] for name in sorted(origins) if name not in secret}
    for name, value in values.items():
        if name not in passed:
            text = cut(f"os.environ[{name!r}] = {value!r}", _SHOWN)
            yield None, Difference(DifferenceKind.REPLAYED, text, origins[name])
    if values:
        lines = [_line(name, value, is_passed=name in passed) for name, value in values.items()]
        yield Item("environment", "state", "\n".join(lines), position=FIRST), None
    asked = _asked_for(trees, aliases)
    for name in sorted(asked & set(here) - set(passed) - set(origins)):
        if not _fits(name, given):
            is_secret = name in environment.held_back(here, [name])
            yield None, Difference(DifferenceKind.NOT_CARRIED, _ask_for(name, is_secret=is_secret))
    for difference in _unnamed(set(fresh) - set(origins) - set(passed) - asked):
        yield None, difference


def _unnamed(names: set[str]) -> Iterator[Difference]:
    secrets = names & set(environment.held_back(os.environ, names))
    for key, some in (("pass_env", names - secrets), ("secrets", secrets)):
        if some:
            text = f"variables that no cell names: write `{key}: [{', '.join(sorted(some))}]` in the header"
            yield Difference(DifferenceKind.NOT_CARRIED, text)


def changed() -> list[str]:
    """The variables that are set here and that this process was not started with, or not so."""
    try:
        started = set(system.environment(os.getpid()))
    except OSError:
        return []  # it cannot be looked at
    return [name for name, value in os.environ.items() if os.fsencode(f"{name}={value}") not in started]


def has_fixed_hashes() -> bool:
    """Whether the kernel was started with the `PYTHONHASHSEED` that trials get; set later, it changes no hash here."""
    if not sys.flags.hash_randomization and os.environ.get("PYTHONHASHSEED", "0") == "0":
        return True
    return os.environ.get("PYTHONHASHSEED", "random").isdigit() and "PYTHONHASHSEED" not in changed()


def _origin(name: str, cells: Sequence[Cell]) -> str:
    """The last cell that ran here and names a variable."""
    naming = (cell for cell in reversed(cells) if name in cell.source and python_tree(cell.source) is not None)
    return next((cell.label for cell in naming), "")


def _line(name: str, value: str, *, is_passed: bool) -> str:
    """What is passed on stays as the trial has it, such as the GPUs that it was given."""
    environ = '__import__("os").environ'
    return f"{environ}.setdefault({name!r}, {value!r})" if is_passed else f"{environ}[{name!r}] = {value!r}"


def _ask_for(name: str, *, is_secret: bool) -> str:
    if is_secret:
        return f"os.environ[{name!r}] looks like a secret: write `secrets: [{name}]` in the header"
    return f"os.environ[{name!r}]: write `pass_env: [{name}]` in the header"


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _asked_for(trees: Iterable[ast.Module], aliases: dict[str, str]) -> set[str]:
    """Variables that code reads by name."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Subscript) and path_of(node.value, aliases) == "os.environ":
            found.update(_text(node.slice))
        elif isinstance(node, ast.Call) and path_of(node.func, aliases) in {"os.environ.get", "os.getenv"}:
            found.update(name for first in node.args[:1] for name in _text(first))
    return found


def _text(node: ast.AST | None) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
