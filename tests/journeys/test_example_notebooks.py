"""Every example notebook runs from top to bottom, as `nbval --nbval-lax` sees it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home

NOTEBOOKS = sorted((Path(__file__).parents[2] / "example_notebooks").glob("*.ipynb"))
# By default a notebook shows the same with fewer trials, workers and layers.
FEWER = {
    "02": {"trials: 12": "trials: 2"},
    "05": {"trials: 40": "trials: 8", "trials: 30": "trials: 6", "max_iter=30": "max_iter=10"},
}
# They take a minute; by default other tests go the same ways.
LONG = {
    "04": "oracle/test_plan_questions.py, browser/test_plan_view.py",
    "06": "journeys/test_pipeline_in_a_cell.py, parallel/test_checkpoints.py",
    "07": "ssh/test_manager_on_hosts.py, ssh/test_multi_node_torchrun.py",
    "11": "journeys/test_federated.py",
}
BY_DEFAULT = [path for path in NOTEBOOKS if path.stem[:2] not in LONG]


@pytest.mark.notebooks
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("path", BY_DEFAULT, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for many, few in FEWER.get(path.stem[:2], {}).items():
        assert many in text, f"the notebook has no {many!r} any more: change FEWER"
        text = text.replace(many, few)
    runs(text, tmp_path)


@pytest.mark.notebooks
@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if path.stem[:2] in {*FEWER, *LONG}], ids=lambda path: path.stem
)
def test_the_notebook_runs_with_all_that_it_has(path: Path, tmp_path: Path) -> None:
    runs(path.read_text(encoding="utf-8"), tmp_path)


def runs(text: str, folder: Path) -> None:
    """Run a notebook from top to bottom in a home of its own."""
    (folder / "example.ipynb").write_text(text, encoding="utf-8")
    home = Home(folder / "home")
    environ = {
        **os.environ,
        "JUPYTER_AUTOTRAIN_HOME": str(home.root),
        "JUPYTER_DATA_DIR": str(folder / "data"),  # where a session's kernel spec goes
        "OMP_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [
        sys.executable,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "nbval.plugin", "--nbval-lax"),
        *("--rootdir", str(folder), "example.ipynb"),
    ]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=1100, check=False
        )
        assert done.returncode == 0, done.stdout[-4000:]
    finally:
        status = manager.status(home)
        if status.alive:
            psutil.Process(status.pid).kill()
