"""Every example notebook runs from top to bottom, as `nbval --nbval-lax` sees it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home

NOTEBOOKS = sorted((Path(__file__).parents[2] / "example_notebooks").glob("*.ipynb"))


@pytest.mark.notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    copy = shutil.copy(path, tmp_path / path.name)
    home = Home(tmp_path / "home")
    environ = {
        **os.environ,
        "JUPYTER_AUTOTRAIN_HOME": str(home.root),
        "OMP_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval-lax",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        copy,
    ]
    try:
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=280, check=False
        )
        assert done.returncode == 0, done.stdout[-4000:]
    finally:
        status = manager.status(home)
        if status.alive:
            psutil.Process(status.pid).kill()
