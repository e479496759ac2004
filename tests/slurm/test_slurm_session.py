"""A session in a job of a cluster: its cells, its variables and its files, over the agent's channel."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.sessions.handle import Session
from jupyter_autotrain.client.sessions.opening import SessionRequest, open_session
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.labs.slurm_lab import SlurmLab
from tests.sessions import assert_files_go_there, printed


@pytest.fixture
def session(cluster: SlurmLab, tmp_path: Path) -> Iterator[Session]:
    home = Home(tmp_path / "home")
    opened = open_session(SessionRequest("lab", "slurm", {"cpus": 1}), home, tmp_path, None, Dialogue(print, input))
    with Session(opened) as session:
        yield session
    opened.stop()
    status = manager.status(home)
    if status.alive:
        os.kill(status.pid, signal.SIGKILL)


def test_it_keeps_its_state_in_its_job_without_a_manager_until_it_is_closed(
    session: Session, cluster: SlurmLab, tmp_path: Path
) -> None:
    assert printed(session, "import os; count = 41; print('SLURM_JOB_ID' in os.environ and count)") == "41\n"
    home = session.experiment.home
    os.kill(manager.status(home).pid, signal.SIGKILL)
    wait_until(lambda: not manager.status(home).alive, "the manager's end")
    session.push("given", {"number": 1})
    assert printed(session, "count += given['number']; print(count)") == "42\n"
    assert session.pull("count") == 42
    assert_files_go_there(session, tmp_path)
    manager.ensure(home)
    session.close_session()
    assert session.experiment.state == "SUCCEEDED"
    wait_until(lambda: not cluster.run("squeue", "--noheader"), "the end of the job")
