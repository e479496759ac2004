"""The one archive of our own code: the same bytes for every place and from every process, compiled, few imports."""

from __future__ import annotations

import hashlib
import io
import marshal
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.backends import travelling_code
from jupyter_autotrain.backends.kubernetes.storage.code_objects import LIMIT_BYTES
from jupyter_autotrain.backends.transfer import folders

_DIGEST = "from jupyter_autotrain.backends import travelling_code\nprint(travelling_code.archive().digest)"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agent")
    (folder / agent_archive.NAME).write_bytes(travelling_code.archive().content)
    agent_archive.unpack_in(str(folder))
    return folder


def run(folder: Path, program: str) -> str:
    text = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{program}"
    ended = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", text], check=True, capture_output=True, text=True)
    return ended.stdout


def test_every_process_makes_the_same_archive_which_leaves_room_in_a_config_map() -> None:
    made = travelling_code.archive()
    assert made.digest == hashlib.sha256(made.content).hexdigest()
    assert len(made.content) < 0.74 * LIMIT_BYTES  # in base64 a request of less than 1 MiB
    variables = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPYCACHEPREFIX": "/nonexistent"}  # nothing is compiled yet
    argv = [sys.executable, "-B", "-c", _DIGEST]
    assert subprocess.run(argv, check=True, capture_output=True, text=True, env=variables).stdout.strip() == made.digest


def test_a_host_gets_the_bytes_that_pods_get_in_a_folder_of_their_digest() -> None:
    made = travelling_code.archive()
    folder = folders.of_agent(made)
    (file,) = folder.files
    with file.open() as source:
        assert source.read() == made.content
    assert folder.digest == file.sha256 == made.digest


def test_other_code_has_another_digest(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("old")
    before = travelling_code.make(tmp_path, [module])
    module.write_text("newer")
    assert travelling_code.make(tmp_path, [module]).digest != before.digest


def test_it_names_no_path_of_this_machine(unpacked: Path) -> None:
    folder = str(travelling_code.package_folder()).encode()
    assert [path.name for path in unpacked.rglob("*.pyc") if folder in path.read_bytes()] == []


def test_all_modules_of_the_agent_are_unpacked_and_the_archive_is_gone(unpacked: Path) -> None:
    root = travelling_code.package_folder().parent
    sent = {str(path.relative_to(root)) for path in travelling_code.travelling_paths()}
    assert {str(path.relative_to(unpacked)) for path in unpacked.rglob("*.py")} == sent
    assert [path.name for path in unpacked.iterdir()] == ["jupyter_autotrain"]


def test_a_pod_of_one_node_without_archives_imports_no_network_client(unpacked: Path) -> None:
    program = (
        "import jupyter_autotrain.agent.pods.program\n"
        "print(*{'ssl', 'http.client', 'urllib.request'} & set(sys.modules))"
    )
    assert run(unpacked, program).split() == []


def test_a_place_of_the_managers_python_takes_modules_as_they_were_compiled(unpacked: Path) -> None:
    compiled = [*(unpacked / "jupyter_autotrain").rglob("*.pyc")]
    assert len(compiled) > 50
    for path in compiled:
        source = path.parent.parent / f"{path.name.partition('.')[0]}.py"
        source.write_text("raise AssertionError('compiled again')\n")
    run(unpacked, "import jupyter_autotrain.agent.supervisor.supervisor_main")


def test_a_module_with_a_slice_that_python_keeps_as_a_constant_travels_at_least_as_source(tmp_path: Path) -> None:
    module = tmp_path / "sliced.py"
    module.write_text("REST = 'abc'[1:]\n\ndef rest(text):\n    return text[1:], text[:-1]\n")
    with zipfile.ZipFile(io.BytesIO(travelling_code.make(tmp_path, [module]).content)) as made:
        files = marshal.loads(made.read(agent_archive.MODULES))
    assert files["sliced.py"] == module.read_bytes()
