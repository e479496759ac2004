"""Experiments on a cluster, by a real manager that is killed while trials run and wait there."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.manager.reasons import explain
from jupyter_autotrain.testing import wait_until
from tests.labs.slurm_lab import SlurmLab

CELL = """
import pathlib, time
for step in range(40):
    report(step=step, loss=1.0)
    time.sleep(0.05)
while not pathlib.Path(WAY).exists():
    time.sleep(0.05)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    yield home
    status = manager.status(home)
    if status.alive:
        os.kill(status.pid, signal.SIGKILL)


LONG_JOBS = pytest.param(
    {"type": "slurm", "reuse": 2, "reuse_idle": "1s"},
    id="long jobs",
    marks=pytest.mark.long,
)


@pytest.mark.parametrize("backend", [pytest.param("slurm", id="jobs"), LONG_JOBS])
def test_a_manager_that_is_killed_while_trials_run_and_wait_loses_and_doubles_nothing(
    backend: object, cluster: SlurmLab, home: Home, tmp_path: Path
) -> None:
    code = CELL.replace("WAY", repr(str(tmp_path / "way")))
    experiment = submit(code, home=home, name="e", backend=backend, trials=3, concurrency=3, resources={"cpus": 8})
    told = lambda: "\n".join(explain(experiment.store, home, experiment.record))  # noqa: E731 - short
    wait_until(
        lambda: "next in line" in told() or "waits for its turn in a pilot job" in told(),
        "a trial that waits",
        within_s=240,
    )
    os.kill(manager.status(home).pid, signal.SIGKILL)
    wait_until(lambda: not manager.status(home).alive, "the manager's end")
    manager.ensure(home)
    (tmp_path / "way").touch()
    wait_until(lambda: experiment.store.experiment(experiment.id).state.is_final, "the end")
    assert [trial.state for trial in experiment.trials] == [TrialState.SUCCEEDED] * 3
    seen = [(point.number, point.attempt, point.step) for point in experiment.store.points(experiment.id)]
    assert sorted(seen) == [(number, 1, step) for number in range(1, 4) for step in range(40)]
    wait_until(lambda: not cluster.run("squeue", "--noheader"), "the end of all jobs")
