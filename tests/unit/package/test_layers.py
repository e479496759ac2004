"""No module names a module of a higher layer in a string: import-linter sees only import statements."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = "jupyter_autotrain"
ENTRY_POINTS = {f"{PACKAGE}.backends", f"{PACKAGE}.tuners"}  # groups that plugins name, not modules
MODULE_NAME = re.compile(rf"{PACKAGE}((?:\.\w+)+)(?::\w+)?")


def layers() -> list[set[str]]:
    """Return the layers that import-linter holds, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    [found] = [one["layers"] for one in contracts if one["type"] == "layers" and one["containers"] == [PACKAGE]]
    return [set(re.findall(r"\w+", layer)) for layer in found]


def named_modules(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the top-level package of every module of this package that a string names."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        named = MODULE_NAME.fullmatch(node.value)
        if named and node.value not in ENTRY_POINTS:
            yield node.lineno, named[1].split(".")[1]


def upward(package: str, source: str, order: list[set[str]]) -> list[str]:
    """Return the lines of a module of `package` that name a module of a layer that is not below it."""
    level = {name: depth for depth, layer in enumerate(order) for name in layer}
    found = []
    for line, target in named_modules(source):
        if target != package and level[target] <= level[package]:
            found.append(f"line {line}: {target}")
    return found


def modules() -> list[Path]:
    """All modules but the top one, which may name every layer."""
    top = ROOT / PACKAGE
    return [path for path in sorted(top.rglob("*.py")) if path != top / "__init__.py"]


def test_no_module_names_a_module_of_a_layer_that_is_not_below_it() -> None:
    order = layers()
    found = []
    for path in modules():
        inside = path.relative_to(ROOT / PACKAGE)
        faults = upward(inside.parts[0].removesuffix(".py"), path.read_text(encoding="utf-8"), order)
        found += [f"{inside}, {fault}" for fault in faults]
    assert found == []


@pytest.mark.parametrize(
    ("package", "source", "found"),
    [
        ("client", 'import_module("jupyter_autotrain.widgets").show(self)', ["line 1: widgets"]),
        ("client", '__import__("jupyter_autotrain.cell")', ["line 1: cell"]),
        ("client", 'VIEWS = {"show": "jupyter_autotrain.widgets.show:show"}', ["line 1: widgets"]),
        ("parallel", 'import_module("jupyter_autotrain.store")', ["line 1: store"]),
        ("parallel", 'import_module("jupyter_autotrain.parallel.trace")', []),
        ("client", 'import_module("jupyter_autotrain.store")', []),
        ("client", '"""Text about jupyter_autotrain.widgets."""', []),
    ],
)
def test_a_string_that_names_a_layer_above_or_beside_is_found(package, source, found) -> None:
    assert upward(package, source, [{"cell"}, {"widgets"}, {"client"}, {"store", "parallel"}]) == found
