"""What runs on a host beside the trial must not need more than Python 3.9 and its standard library."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jupyter_autotrain

PACKAGE = Path(jupyter_autotrain.__file__).parent
NEWER_NAMES = {"StrEnum", "TypeAlias", "UnionType", "assert_never", "Self", "UTC"}
NEWER_ARGUMENTS = {("dataclass", "slots"), ("dataclass", "kw_only"), ("zip", "strict")}
IMPORTED = """
import sys
before = set(sys.modules)
import jupyter_autotrain.worker.supervisor_main, jupyter_autotrain.worker.worker_main
for name in sorted(set(sys.modules) - before):
    print(name)
"""


def modules() -> list[str]:
    argv = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n{IMPORTED}"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()


def files() -> list[Path]:
    """The worker, all that it imports of this package, and the receiver of files."""
    own = [name for name in modules() if name.split(".")[0] == "jupyter_autotrain"]
    paths = {PACKAGE / "backends" / "ssh" / "receiving.py", *(PACKAGE / "worker").glob("*.py")}
    for name in own:
        path = PACKAGE.parent.joinpath(*name.split("."))
        paths.add(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    return sorted(paths)


def newer(tree: ast.AST) -> list[str]:
    """What is evaluated, and only newer versions know."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found += [f"line {node.lineno}: {one.name}" for one in node.names if one.name in NEWER_NAMES]
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            unions = [one for one in node.args[1:] if name == "isinstance" and isinstance(one, ast.BinOp)]
            found += [f"line {node.lineno}: isinstance of a union" for _ in unions]
            given = [(name, one.arg) for one in node.keywords]
            found += [f"line {node.lineno}: {one}" for one in given if one in NEWER_ARGUMENTS]
    return found


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_worker_and_the_receiver_are_python_3_9(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    assert newer(tree) == []


def test_the_check_finds_what_python_3_9_does_not_know() -> None:
    with pytest.raises(SyntaxError):
        ast.parse("match x:\n    case 1: pass", feature_version=(3, 9))
    code = "from enum import StrEnum\nisinstance(x, int | str)\nzip(a, b, strict=True)\ndataclass(slots=True)"
    assert len(newer(ast.parse(code))) == 4


def test_the_worker_needs_nothing_installed() -> None:
    standard = sys.stdlib_module_names | {"jupyter_autotrain"}
    assert [name for name in modules() if name.split(".")[0] not in standard] == []
