"""Lists expressions that do several things at once; `make check` runs it, and it fails when there is one.

Ruff has no rule for them: a comprehension inside a comprehension, a conditional inside a conditional, and two
assignments on one line (unless the values need each other, as in a swap).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def main(folders: list[str]) -> int:
    """Print each finding as `file:line: what`; the exit code is 1 when there is one."""
    found = 0
    for folder in folders:
        for file in sorted(Path(folder).rglob("*.py")):
            for line, what in findings(file.read_text(encoding="utf-8")):
                found += 1
                print(f"{file}:{line}: {what}")
    return int(found > 0)


def findings(source: str) -> Iterator[tuple[int, str]]:
    """Line and kind of each dense expression."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, COMPREHENSIONS) and _has_inside(node, COMPREHENSIONS):
            yield node.lineno, "a comprehension inside a comprehension; name the inner one first"
        if isinstance(node, ast.IfExp) and _has_inside(node, (ast.IfExp,)):
            yield node.lineno, "a conditional inside a conditional; use statements"
        if isinstance(node, ast.Assign) and _assigns_several(node):
            yield node.lineno, "several assignments at once; one line each"


def _has_inside(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(inner is not node and isinstance(inner, kinds) for inner in ast.walk(node))


def _assigns_several(node: ast.Assign) -> bool:
    (target, *_), value = node.targets, node.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return False
    assigned = {ast.unparse(item) for item in target.elts}
    read = {ast.unparse(item) for item in ast.walk(value) if isinstance(item, ast.Name | ast.Attribute | ast.Subscript)}
    return not assigned & read


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
