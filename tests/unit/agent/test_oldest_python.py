"""Supervisor and worker use nothing that Python 3.9 lacks: at another backend there may be no newer one."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.backends import travelling_code

OLDEST = (3, 9)
LIST_MODULES = """
import sys
import jupyter_autotrain.agent.ranks.cell_runner
import jupyter_autotrain.agent.ranks.child_definitions
import jupyter_autotrain.agent.environments.container_main
import jupyter_autotrain.agent.environments.interpreters
import jupyter_autotrain.agent.environments.starting
import jupyter_autotrain.agent.ranks.pictures
import jupyter_autotrain.agent.system.nvidia
import jupyter_autotrain.agent.supervisor.supervisor_main
import jupyter_autotrain.agent.ranks.worker_main
ours = [module for name, module in sys.modules.items() if name.startswith("jupyter_autotrain")]
print(*[module.__file__ for module in ours], sep="\\n")
"""


def sources() -> list[Path]:
    """Return the modules that either of them loads."""
    done = subprocess.run([sys.executable, "-c", LIST_MODULES], capture_output=True, text=True, check=True)
    return [Path(line) for line in done.stdout.splitlines()]


def faults(text: str) -> list[int]:
    """Return the lines with a union of types that is evaluated, which Python has from 3.10 on."""
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


def oldest_python() -> str:
    """Return a Python 3.9 of this machine."""
    own = sorted(Path("~/.pyenv/versions").expanduser().glob("3.9.*/bin/python3.9"))
    for python in (shutil.which("python3.9"), *own):
        if python and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(python)
    pytest.skip("no Python 3.9 is installed here")


def test_every_module_of_the_agent_is_imported_by_python_3_9(tmp_path: Path) -> None:
    archive = tmp_path / agent_archive.NAME
    archive.write_bytes(travelling_code.archive().content)
    code = f"""if True:
        import importlib, pkgutil, sys
        sys.path.insert(0, {str(archive)!r})
        import agent_archive
        agent_archive.unpack_in({str(tmp_path)!r})
        sys.path.insert(0, {str(tmp_path)!r})
        import jupyter_autotrain.agent as agent
        foreign = "matplotlib_backend"  # its base class is matplotlib's
        names = [one.name for one in pkgutil.walk_packages(agent.__path__, agent.__name__ + ".")]
        for name in names:
            if not name.endswith(foreign):
                importlib.import_module(name)
        print(len(names))
    """
    done = subprocess.run([oldest_python(), "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert int(done.stdout) > 100


def test_a_pod_compares_packages_by_python_3_9(tmp_path: Path) -> None:
    code = f"""if True:
        import sys
        sys.path.insert(0, {str(travelling_code.package_folder().parent)!r})
        from jupyter_autotrain.agent.pods import preparing
        one = {{"name": "pip", "version": "0.1", "modules": ["pip"]}}
        trial = {{"python_packages": [one], "python_environment": {{"kind": "place"}}, "python_version": "3.9.1"}}
        print(preparing.check(trial, sys.executable, {{}}))
    """
    done = subprocess.run([oldest_python(), "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "pip" in done.stdout
