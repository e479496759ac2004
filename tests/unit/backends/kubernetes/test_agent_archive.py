"""The archive that pods run: compiled for the manager's Python, and with few imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_autotrain.backends.kubernetes.storage import agent_archive
from jupyter_autotrain.backends.kubernetes.storage.code_objects import LIMIT_BYTES
from jupyter_autotrain.backends.kubernetes_pod import unpack


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agent")
    archive = folder / "agent.zip"
    archive.write_bytes(agent_archive.agent_file().content)
    unpack.unpack(str(archive), str(folder))
    return folder


def run(folder: Path, program: str) -> str:
    text = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{program}"
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", text], check=True, capture_output=True, text=True)
    return ended.stdout


def test_it_leaves_room_in_its_config_map_and_is_the_same_each_time():
    content = agent_archive.agent_file().content
    assert len(content) < 0.8 * LIMIT_BYTES
    assert agent_archive.agent_file.__wrapped__().content == content


def test_a_pod_of_one_node_without_archives_imports_no_network_client(unpacked):
    program = (
        "import jupyter_autotrain.backends.kubernetes_pod.program\n"
        "print(*{'ssl', 'http.client', 'urllib.request'} & set(sys.modules))"
    )
    assert run(unpacked, program).split() == []


def test_a_pod_of_the_managers_python_takes_modules_as_they_were_compiled(unpacked):
    for source in (unpacked / "jupyter_autotrain").rglob("*.py"):
        source.write_text("raise AssertionError('compiled again')\n")
    run(unpacked, "import jupyter_autotrain.worker.supervisor_main")
