"""A session with `--hold training` on a machine with one pretended GPU: trials have it between its cells."""

from __future__ import annotations

import os
import signal

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home
from tests.journeys.kernel import Kernel

ONE_GPU = """#!/bin/sh
case "$1" in --query-gpu=index*) echo "0, GPU-a, Pretended, 8192, 8192";; esac
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvidia-smi").write_text(ONE_GPU)
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    home = Home(tmp_path / "home")
    kernel = Kernel(home, tmp_path / "notebook.ipynb")
    yield kernel
    kernel.run("%autotrain stop lab")
    kernel.close()
    if pid := manager.status(home).pid:
        os.kill(pid, signal.SIGKILL)


def test_a_trial_runs_between_two_cells_of_a_session_that_keeps_its_variables(kernel):
    kernel.run("%autotrain session open lab --gpus 1 --hold training")
    cell = "import os\ncount = 1\nprint('has', os.environ['CUDA_VISIBLE_DEVICES'])"
    assert "has GPU-a\n" in kernel.run(f"%%autotrain --session lab\n{cell}")
    assert "SUCCEEDED" in kernel.run("%%autotrain other --gpus 1 --wait\nprint('trained')")
    assert "counted 2\n" in kernel.run("%%autotrain --session lab\nprint('counted', count + 1)")
