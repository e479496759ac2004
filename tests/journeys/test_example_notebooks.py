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
FEWER = {"trials: 4": "trials: 2", "range(30)": "range(3)"}
# Each takes a minute. By default other tests go the same ways, and test_documentation.py reads all cells.
LONG = {
    "02": "journeys/test_cell_to_result.py, unit/manager/test_search.py",
    "03": "journeys/test_cell_to_result.py, contract/test_local_backend.py",
    "04": "oracle/test_plan_questions.py, browser/test_plan_view.py",
    "05": "fault/test_manager_faults.py, unit/views/test_plots.py",
    "06": "journeys/test_pipeline_in_a_cell.py, parallel/test_checkpoints.py",
    "07": "ssh/test_manager_on_hosts.py, ssh/test_multi_node_torchrun.py",
    "08": "kubernetes/test_cells_on_a_cluster.py, kubernetes/test_multi_node.py",
    "09": "services/test_openpai.py, services/test_dlts.py, services/test_aml.py, services/test_dlc.py",
    "10": "journeys/test_session.py",
    "11": "journeys/test_federated.py",
    "12": "journeys/test_labels.py",
}


@pytest.mark.notebooks
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem[:2] not in LONG], ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for many, few in FEWER.items():
        assert many in text, f"the notebook has no {many!r} any more: change FEWER"
        text = text.replace(many, few)
    runs(text, tmp_path)


@pytest.mark.notebooks
@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs_with_all_that_it_has(path: Path, tmp_path: Path) -> None:
    runs(path.read_text(encoding="utf-8"), tmp_path)


def test_the_tests_that_go_the_ways_of_a_long_notebook_exist() -> None:
    tests = Path(__file__).parents[1]
    named = [name for names in LONG.values() for name in names.split(", ")]
    assert [name for name in named if not (tests / name).exists()] == []


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
