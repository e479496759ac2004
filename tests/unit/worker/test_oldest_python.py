"""Supervisor and worker use nothing that Python 3.9 lacks: at another backend there may be no newer one."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

OLDEST = (3, 9)
LIST_MODULES = """
import sys
import jupyter_autotrain.worker.cell_runner
import jupyter_autotrain.worker.child_definitions
import jupyter_autotrain.worker.environments.container_main
import jupyter_autotrain.worker.environments.interpreters
import jupyter_autotrain.worker.environments.starting
import jupyter_autotrain.worker.pictures
import jupyter_autotrain.worker.gpu_usage
import jupyter_autotrain.worker.supervisor_main
import jupyter_autotrain.worker.worker_main
ours = [module for name, module in sys.modules.items() if name.startswith("jupyter_autotrain")]
print(*[module.__file__ for module in ours], sep="\\n")
"""


def sources() -> list[Path]:
    """The modules that either of them loads."""
    done = subprocess.run([sys.executable, "-c", LIST_MODULES], capture_output=True, text=True, check=True)
    return [Path(line) for line in done.stdout.splitlines()]


def faults(text: str) -> list[int]:
    """The lines with a union of types that is evaluated, which Python has from 3.10 on."""
    calls = [node for node in ast.walk(ast.parse(text, feature_version=OLDEST)) if isinstance(node, ast.Call)]
    tests = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in {"isinstance", "issubclass"}]
    return [call.lineno for call in tests if isinstance(call.args[1], ast.BinOp)]


def test_what_supervisor_and_worker_load_is_written_for_the_oldest_python() -> None:
    found = sources()
    assert len(found) > 20
    assert {path.name: lines for path in found if (lines := faults(path.read_text()))} == {}


@pytest.mark.parametrize("text", ["isinstance(1, int | str)", "match 1:\n    case 1: pass"])
def test_this_test_finds_newer_syntax(text: str) -> None:
    try:
        assert faults(text)
    except SyntaxError as error:
        assert "3.10" in str(error)  # noqa: PT017 - either way is right
