"""A cell with `track: mlflow` and a real MLflow server, which is away at first."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

pytest.importorskip("mlflow.server", reason="mlflow is not installed: its own environment has other pins than ours")

import jupyter_autotrain as at
from jupyter_autotrain.testing import wait_until

CELL = """\
%%autotrain tracked --wait
track: mlflow
objective: maximize acc
search: {x: 'choice(1, 2)'}
tuner: grid
---
import pathlib
pathlib.Path("model.txt").write_text(str(x))
for step in range(3):
    report(step=step, acc=x * step)
"""


@pytest.fixture
def address(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    return port


@pytest.fixture
def server(address, tmp_path):
    words = [
        "server",
        "--backend-store-uri",
        f"sqlite:///{tmp_path}/mlflow.db",
        "--artifacts-destination",
        str(tmp_path),
    ]
    argv = [sys.executable, "-m", "mlflow", *words, "--port", str(address), "--workers", "1"]
    started = []

    def start():
        started.append(subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    yield start
    for process in started:
        process.terminate()
        process.wait()


@pytest.mark.long
def test_a_server_that_comes_late_has_all_and_its_run_is_compared(notebook, address, server):
    from mlflow.tracking import MlflowClient

    notebook.run(CELL)
    experiment = at.attach("tracked")
    assert experiment.state == "SUCCEEDED"
    server()
    wait_until(lambda: len(runs(MlflowClient())) == 2, "the runs", within_s=240)
    found = runs(MlflowClient())
    assert sorted(run.data.params["x"] for run in found) == ["1", "2"]
    assert sorted(run.data.metrics["acc"] for run in found) == [2, 4]
    best = next(run for run in found if run.data.params["x"] == "2")
    history = MlflowClient().get_metric_history(best.info.run_id, "acc")
    assert [(point.step, point.value) for point in history] == [(0, 0), (1, 2), (2, 4)]
    assert [file.path for file in MlflowClient().list_artifacts(best.info.run_id)] == ["model.txt"]
    _, shown = notebook.run(f"%autotrain compare tracked mlflow:{best.info.run_id}")
    assert f"mlflow:{best.info.run_name}" in shown
    assert "FINISHED" in shown


def runs(client):
    """Return the runs that have ended, once the server answers."""
    from mlflow.exceptions import MlflowException

    try:
        known = client.get_experiment_by_name("tracked")
    except MlflowException:
        return []
    found = client.search_runs([known.experiment_id]) if known else []
    return [run for run in found if run.info.status == "FINISHED"]
