"""Variables of the environment that cells set, and those that the cell's code reads by name."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import FIRST, Item
from jupyter_autotrain.capture.state.effects import Effect
from jupyter_autotrain.capture.state.paths import path_of
from jupyter_autotrain.capture.syntax.cells import Cell
from jupyter_autotrain.core import environment
from jupyter_autotrain.core.text_format import cut

_MAGIC = re.compile(r"^\s*%(?:set_)?env[ \t]+([A-Za-z_]\w*)[ \t]*[= \t][ \t]*\S", re.MULTILINE)
_OF_A_PLACE = ("PATH", "HOME", "PYTHON*", "LD_*", "VIRTUAL_ENV", "JUPYTER_*", "JPY_*", "MPLBACKEND")
_SHOWN = 80


def restore_code(
    effects: Sequence[Effect], cells: Iterable[Cell], trees: Sequence[ast.Module], aliases: dict[str, str],
    given: Collection[str],
) -> Iterator[tuple[Item | None, Difference | None]]:  # fmt: skip
    """What sets the notebook's variables again, and the differences of those that stay here.

    A variable that the trial has already, from the header or because it is always passed on, is left as it is.

    Args:
        effects: What the cells did.
        cells: The executed cells.
        trees: The code that travels.
        aliases: The full names of what it imports.
        given: Names and patterns of variables that the header gives.
    """
    here = dict(os.environ)
    passed = environment.passed(os.environ)
    found = {**_set_by_magic(cells), **_set_by(effects)}
    origins = {name: label for name, label in found.items() if name in here and not _fits(name, (*_OF_A_PLACE, *given))}
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
    for name in sorted(_asked_for(trees, aliases) & set(here) - set(passed) - set(origins)):
        if not _fits(name, given):
            is_secret = name in environment.held_back(here, [name])
            yield None, Difference(DifferenceKind.NOT_CARRIED, _ask_for(name, is_secret=is_secret))


def has_fixed_hashes(effects: Sequence[Effect], cells: Iterable[Cell]) -> bool:
    """Whether the kernel was started with the `PYTHONHASHSEED` that trials get; set later, it changes no hash here."""
    if not sys.flags.hash_randomization and os.environ.get("PYTHONHASHSEED", "0") == "0":
        return True
    is_set_here = "PYTHONHASHSEED" in {**_set_by_magic(cells), **_set_by(effects)}
    return os.environ.get("PYTHONHASHSEED", "random").isdigit() and not is_set_here


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


def _set_by_magic(cells: Iterable[Cell]) -> dict[str, str]:
    """Variables that lines such as `%env NAME=value` set, each with its cell."""
    return {name: cell.label for cell in cells if "env" in cell.source for name in _MAGIC.findall(cell.source)}


def _set_by(effects: Iterable[Effect]) -> dict[str, str]:
    """Variables that code sets by name, each with its cell."""
    return {name: effect.scope.label for effect in effects for name in _names(effect)}


def _names(effect: Effect) -> Iterator[str]:
    target = effect.target
    if isinstance(target, ast.Subscript) and effect.path.startswith("os.environ["):
        yield from _text(target.slice)
    elif isinstance(target, ast.Call) and effect.path == "os.environ.setdefault" and target.args:
        yield from _text(target.args[0])
    elif isinstance(target, ast.Call) and effect.path == "os.environ.update":
        yield from (keyword.arg for keyword in target.keywords if keyword.arg)
        for given in target.args:
            for key in given.keys if isinstance(given, ast.Dict) else ():
                yield from _text(key)


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
