"""Variables of the environment that this process was not started with, and those that the cell's code reads by name."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from jupyter_autotrain.agent import environment, system
from jupyter_autotrain.capture.differences import Difference, DifferenceKind, not_carried
from jupyter_autotrain.capture.items import FIRST, Item
from jupyter_autotrain.capture.state.paths import path_of
from jupyter_autotrain.capture.syntax.cells import Cell, python_tree
from jupyter_autotrain.capture.syntax.nodes import written_text
from jupyter_autotrain.core.text_format import cut

_OF_A_PLACE = (
    "PATH", "HOME", "PYTHON*", "LD_*", "VIRTUAL_ENV", "JUPYTER_*", "JPY_*", "IPYTHONDIR", "MPLBACKEND", "PYTEST_*",
    "TERM", "PAGER", "GIT_PAGER", "CLICOLOR*", "FORCE_COLOR", "PYDEVD_*",
)  # fmt: skip
"""Variables that belong to a machine, or that a kernel sets for what it starts."""
_READERS = frozenset({"os.environ.get", "os.getenv"})
_SHOWN = 80


def restore_code(
    cells: Sequence[Cell], trees: Sequence[ast.Module], aliases: dict[str, str], given: Collection[str]
) -> Iterator[tuple[Item | None, Difference | None]]:
    """Yield the items that set the notebook's variables again, and the differences of those that stay here.

    A variable that the trial has already, from the header or because it is always passed on, is left as it is.

    Args:
        cells: The executed cells.
        trees: The code that travels.
        aliases: The full names of what it imports.
        given: Names and patterns of variables that the header gives.
    """
    passed = environment.passed(os.environ)
    fresh = {name: _origin(name, cells) for name in changed() if not _fits(name, (*_OF_A_PLACE, *given))}
    origins = {name: origin for name, origin in fresh.items() if origin}
    yield from _set_again(origins, passed)
    asked = _asked_for(trees, aliases)
    for name in sorted(asked & set(os.environ) - set(passed) - set(origins)):
        if not _fits(name, given):
            yield None, not_carried(_ask_for(name))
    for difference in _unnamed(set(fresh) - set(origins) - set(passed) - asked):
        yield None, difference


def _set_again(origins: Mapping[str, str], passed: Collection[str]) -> Iterator[tuple[Item | None, Difference | None]]:
    """Yield the item that sets the variables which cells have set, and the differences."""
    lines = []
    for name, origin in sorted(origins.items()):
        value = os.environ[name]
        if _is_secret(name):
            yield None, not_carried(_ask_for(name), origin)
            continue
        lines.append(_line(name, value, is_passed=name in passed))
        if name not in passed:
            yield None, Difference(DifferenceKind.REPLAYED, cut(f"os.environ[{name!r}] = {value!r}", _SHOWN), origin)
    if lines:
        yield Item("environment", "state", "\n".join(lines), position=FIRST), None


def _is_secret(name: str) -> bool:
    return name in environment.held_back(os.environ, [name])


def _unnamed(names: set[str]) -> Iterator[Difference]:
    secrets = names & set(environment.held_back(os.environ, names))
    for key, some in (("pass_env", names - secrets), ("secrets", secrets)):
        if some:
            text = f"variables that no cell names: write `{key}: [{', '.join(sorted(some))}]` in the header"
            yield not_carried(text)


def changed() -> list[str]:
    """Return the variables set here that this process was not started with, or not with this value."""
    try:
        started = set(system.environment(os.getpid()))
    except OSError:
        return []  # it cannot be looked at
    return [name for name, value in os.environ.items() if os.fsencode(f"{name}={value}") not in started]


def has_fixed_hashes() -> bool:
    """Tell whether the kernel was started with the `PYTHONHASHSEED` that trials get.

    One that is set later changes no hash here.
    """
    if not sys.flags.hash_randomization and os.environ.get("PYTHONHASHSEED", "0") == "0":
        return True
    return os.environ.get("PYTHONHASHSEED", "random").isdigit() and "PYTHONHASHSEED" not in changed()


def _origin(name: str, cells: Sequence[Cell]) -> str:
    """Return the label of the last cell that ran here and names a variable, or ""."""
    naming = (cell for cell in reversed(cells) if name in cell.source and python_tree(cell.source) is not None)
    return next((cell.label for cell in naming), "")


def _line(name: str, value: str, *, is_passed: bool) -> str:
    """Return the line that sets a variable.

    One that is passed on stays as the trial has it, such as the GPUs that it was given.
    """
    environ = '__import__("os").environ'
    return f"{environ}.setdefault({name!r}, {value!r})" if is_passed else f"{environ}[{name!r}] = {value!r}"


def _ask_for(name: str) -> str:
    if _is_secret(name):
        return f"os.environ[{name!r}] looks like a secret: write `secrets: [{name}]` in the header"
    return f"os.environ[{name!r}]: write `pass_env: [{name}]` in the header"


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _asked_for(trees: Iterable[ast.Module], aliases: dict[str, str]) -> set[str]:
    """Return the variables that code reads by name."""
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Subscript(value=owner, slice=name) if path_of(owner, aliases) == "os.environ":
                found.add(written_text(name))
            case ast.Call(func=owner, args=[name, *_]) if path_of(owner, aliases) in _READERS:
                found.add(written_text(name))
    return found
