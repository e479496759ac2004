"""Tests that what runs on a host beside the trial needs no more than Python 3.9 and its standard library.

Where a Python 3.9 is installed it runs a trial on a host; everywhere the code is searched for what is newer.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import jupyter_autotrain
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends import travelling_code
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing import write_bundle
from tests.labs.ssh_lab import LabHost
from tests.labs.ssh_trials import LabBackends, end, read_on, start
from tests.ssh.after_a_fault import is_told, nothing_runs_on

PACKAGE = Path(jupyter_autotrain.__file__).parent
NEWER_NAMES = {"StrEnum", "TypeAlias", "UnionType", "assert_never", "Self", "UTC"}
NEWER_ATTRIBUTES = {
    "hashlib.file_digest", "types.UnionType", "itertools.pairwise", "itertools.batched", "contextlib.chdir",
    "sys.exception", "inspect.get_annotations", "datetime.UTC", "asyncio.timeout", "asyncio.TaskGroup",
    "sys.stdlib_module_names",
    "os.process_cpu_count", "os.EFD_CLOEXEC", "os.eventfd", "os.splice", "math.cbrt", "math.exp2", "operator.call",
}  # fmt: skip
NEWER_ARGUMENTS = {("dataclass", "slots"), ("dataclass", "kw_only"), ("zip", "strict"), ("dataclass", "weakref_slot")}
TOO_OLD = str(next(Path("~/.pyenv/versions").expanduser().glob("3.8.*/bin/python3.8"), "/nonexistent"))
IMPORTED = """
import sys
before = set(sys.modules)
from jupyter_autotrain.agent.service import service, trial_files
import jupyter_autotrain.agent.supervisor.supervisor_main, jupyter_autotrain.agent.ranks.worker_main
for name in sorted(set(sys.modules) - before):
    print(name)
"""


def modules() -> list[str]:
    """Return what agent, supervisor and worker import, in a copy of the tree that travels."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, agent_archive.NAME).write_bytes(travelling_code.archive().content)
        agent_archive.unpack_in(folder)
        argv = [sys.executable, "-I", "-S", "-B", "-c", f"import sys; sys.path.insert(0, {folder!r})\n{IMPORTED}"]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()


def files() -> list[Path]:
    """All of the agent, and what it imports of this package besides."""
    own = [name for name in modules() if name.split(".")[0] == "jupyter_autotrain"]
    paths = {*(PACKAGE / "agent").rglob("*.py")}
    for name in own:
        path = PACKAGE.parent.joinpath(*name.split("."))
        paths.add(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    return sorted(paths)


def newer_attributes(tree: ast.AST) -> list[str]:
    """Attributes of standard modules that came after Python 3.9."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return [f"line {node.lineno}: {ast.unparse(node)}" for node in found if ast.unparse(node) in NEWER_ATTRIBUTES]


def newer(tree: ast.AST) -> list[str]:
    """Return what is evaluated, and only newer versions know."""
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


class _WithoutTypes(ast.NodeTransformer):
    """Removes what only type checkers read."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        return node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_worker_and_the_receiver_are_python_3_9(path: Path) -> None:
    tree = _WithoutTypes().visit(ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9)))
    assert newer(tree) + newer_attributes(tree) == []


def test_the_check_finds_what_python_3_9_does_not_know() -> None:
    with pytest.raises(SyntaxError):
        ast.parse("match x:\n    case 1: pass", feature_version=(3, 9))
    code = "from enum import StrEnum\nisinstance(x, int | str)\nzip(a, b, strict=True)\ndataclass(slots=True)"
    assert len(newer(ast.parse(code))) == 4
    assert len(newer_attributes(ast.parse("import os\nos.eventfd(0)"))) == 1


def test_the_worker_needs_nothing_installed() -> None:
    standard = sys.stdlib_module_names | {"jupyter_autotrain"}
    assert [name for name in modules() if name.split(".")[0] not in standard] == []


def old_python() -> str:
    """Return a Python 3.9 of this machine."""
    found = [
        shutil.which("python3.9") or "",
        *map(str, Path("~/.pyenv/versions").expanduser().glob("3.9.*/bin/python3.9")),
    ]
    for python in found:
        if python and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip("no Python 3.9 is installed here")


def test_a_trial_runs_by_python_3_9_that_has_nothing_installed(make: LabBackends, home: Home) -> None:
    backend = make(home, python=old_python())
    ref = start(backend, home, "import sys\nprint(sys.version_info[:2])\nreport(loss=1)")
    assert end(backend, ref).state is TrialState.SUCCEEDED
    assert read_on(backend, ref, wire.STDOUT, b"") == b"(3, 9)\n"
    assert b'{"loss":1}' in read_on(backend, ref, wire.METRICS, b"")
    receipt = backend.cancel(start(backend, home, "import time\ntime.sleep(600)", number=2), 0.1)
    assert receipt.pids_left == ()


@pytest.mark.parametrize(
    ("python", "found"), [("/nonexistent/python3", "not found|No such file"), ("/usr/bin/env", "env"), (TOO_OLD, "3.8")]
)
def test_a_python_that_is_missing_or_too_old_is_told_in_three_clauses(
    make: LabBackends, home: Home, host: LabHost, python: str, found: str
) -> None:
    if python == TOO_OLD and not Path(TOO_OLD).exists():
        pytest.skip("no Python 3.8 is installed here")
    with pytest.raises(BackendError, match=found) as caught:
        start(make(home, python=python), home, "")
    assert "3.9" in caught.value.expected
    assert "python: /path/to/python3" in caught.value.action
    is_told(caught.value)
    make.close()
    nothing_runs_on(host)


def test_what_was_sent_is_byte_compiled_once_and_told_by_its_name_there(
    make: LabBackends, home: Home, host: LabHost
) -> None:
    backend = make(home)
    write_bundle(home.bundle("e1"), "import helper", files={"helper.py": "import traceback\nWHERE = 1 / 0"})
    ref = start(backend, home, "")
    assert host.files.home(host.user) in str(end(backend, ref).detail["traceback"])
    agents = [path.name for path in (host.home() / ".autotrain" / "agents").iterdir()]
    assert travelling_code.archive().digest in agents
    compiled = {path.name.split(".")[0] for path in (host.home() / ".autotrain").rglob("*.pyc")}
    assert compiled >= {"main", "helper", "service", "supervisor", "cell_runner"}
