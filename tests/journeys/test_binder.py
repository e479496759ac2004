"""Tests of Binder's start: one finished experiment and an open sidebar are there; JupyterLab is started in any case."""

import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import psutil
import pytest

import jupyter_autotrain as at
from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store import Store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    yield home
    status = manager.status(home)
    if status.alive:
        process = psutil.Process(status.pid)
        process.kill()
        psutil.wait_procs([process], timeout=240)


def start(home, **environ):
    found = {**os.environ, "JUPYTER_AUTOTRAIN_HOME": str(home.root), "OMP_NUM_THREADS": "1", **environ}
    found["JUPYTER_CONFIG_DIR"] = str(home.root.parent / "config")
    found["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    argv = [ROOT / "binder" / "start", "echo", "JupyterLab", "--begins"]
    return subprocess.run(argv, cwd=ROOT, env=found, capture_output=True, text=True, timeout=280, check=False)


@pytest.fixture
def layouts(home):
    """Return the folder where JupyterLab keeps layouts."""
    return home.root.parent / "config" / "lab" / "workspaces"


def started(home):
    """Start, and return the one experiment that is there then."""
    done = start(home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("JupyterLab --begins\n")
    with Store.open(home) as store:
        [experiment] = [store.experiment(found) for found in store.ids()]
    return experiment.spec.name, experiment.state.name


@pytest.mark.long  # by default the notebook 01_quickstart trains the same model
def test_a_start_leaves_one_finished_experiment(home):
    pytest.importorskip("sklearn", reason="the demonstration trains a model of scikit-learn: pip install -e '.[demo]'")
    assert started(home) == ("digits-demo", "SUCCEEDED")


def test_a_start_opens_the_sidebar_and_where_an_experiment_is_adds_none(home, layouts):
    at.submit("report(val_acc=1)", name="kept", home=home).wait(240)
    for _ in range(2):
        assert started(home) == ("kept", "SUCCEEDED")
        [layout] = layouts.iterdir()
        assert '"current": "autotrain-experiments"' in layout.read_text()
        layout.write_text(layout.read_text() + "\n")  # as a user's own, it stays
    assert layout.read_text().endswith("\n\n")


def test_a_demonstration_that_cannot_be_trained_does_not_keep_jupyterlab_from_starting(home, layouts):
    layouts.mkdir(parents=True)
    done = start(home, JUPYTER_AUTOTRAIN_HOME="/dev/null/nothing")
    assert done.returncode == 0
    assert done.stdout.endswith("JupyterLab --begins\n")
    assert "was not trained" in done.stderr


def test_packages_that_the_image_has_stay_as_they_are_and_all_others_are_pinned():
    done = subprocess.run(
        [sys.executable, ROOT / "binder" / "constraints.py"], capture_output=True, text=True, check=True
    )
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in done.stdout.splitlines()}
    here = {found.metadata["Name"].lower().replace("_", "-") for found in distributions()}
    every = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    assert "pytest" in here
    assert pinned == every - here
