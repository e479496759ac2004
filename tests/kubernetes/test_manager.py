"""Experiments on a cluster, by a real manager that is killed while trials run and wait there."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, JOBS, PODS

CELL = """
import pathlib, time
for step in range(20):
    report(step=step, loss=1.0)
    time.sleep(0.05)
print("half")
while not pathlib.Path("/gate/open").exists():
    time.sleep(0.05)
result = {"number": 7}
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    yield home
    status = manager.status(home)
    if status.alive:
        os.kill(status.pid, signal.SIGKILL)


def backend_of(cluster: KubernetesLab, gate: Path) -> dict[str, object]:
    gate.mkdir()
    volume = {"path": "/gate", "host_path": str(gate)}
    return {
        "type": "kubernetes", "kubeconfig": str(cluster.kubeconfig), "python": sys.executable, "volumes": [volume],
    }  # fmt: skip


def test_a_manager_that_is_killed_while_trials_run_and_wait_loses_and_doubles_nothing(
    cluster: KubernetesLab, home: Home, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    experiment = submit(
        CELL, home=home, name="e", backend=backend_of(cluster, gate), trials=3, concurrency=3,
        resources={"cpus": 3}, returns=["result"],
    )  # fmt: skip
    running = lambda: [pod for pod in cluster.store.list(PODS, None)[0] if pod["status"].get("phase") == "Running"]  # noqa: E731 - short
    wait_until(lambda: len(running()) == 2, "two trials that run and one that waits")
    os.kill(manager.status(home).pid, signal.SIGKILL)
    wait_until(lambda: not manager.status(home).alive, "the manager's end")
    (gate / "open").touch()
    wait_until(lambda: not running() or len(running()) == 1, "the end of trials without a manager")
    manager.ensure(home)
    wait_until(lambda: experiment.store.experiment(experiment.id).state.is_final, "the end")
    assert [trial.state for trial in experiment.trials] == [TrialState.SUCCEEDED] * 3
    seen = [(point.number, point.attempt, point.step) for point in experiment.store.points(experiment.id)]
    assert sorted(seen) == [(number, 1, step) for number in range(1, 4) for step in range(20)]
    for number in range(1, 4):
        kept = home.trial(experiment.id, number, 1)
        assert (kept / "stdout").read_bytes() == b"half\n"
        assert (kept / "outputs" / "result.pkl").exists()
    for resource in (JOBS, PODS, CONFIG_MAPS):
        wait_until(lambda resource=resource: not cluster.store.list(resource, "default")[0], f"no {resource.plural}")
