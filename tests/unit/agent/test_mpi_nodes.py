"""The folder of an MPI trial: at one path on all hosts, this user's alone, and gone with the trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain.agent.launchers.launchers import LaunchError
from jupyter_autotrain.agent.launchers.mpi_nodes import MpiFolder
from jupyter_autotrain.agent.trial.rank_layout import RankLayout

TRIAL = {"experiment_id": "test-of-mpi-folders", "number": 1, "attempt": 1}
HOSTS = [("h1", [4001, 4002]), ("h2", [5001, 5002])]


def on_host(number: int) -> MpiFolder:
    return MpiFolder(TRIAL, RankLayout(1, number, HOSTS))


def alone() -> MpiFolder:
    return MpiFolder(TRIAL, RankLayout(1, 0, [("127.0.0.1", [0, 0])]))


@pytest.fixture(autouse=True)
def trial_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "control").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_hosts_start_a_rank_by_the_same_command() -> None:
    folder = on_host(0)
    assert folder.rank_command == on_host(1).rank_command
    folder.make(["python", "start rank"])
    try:
        assert Path(folder.path).stat().st_mode & 0o777 == 0o700
        assert Path(folder.rank_command[1]).read_text() == "exec python 'start rank'\n"
    finally:
        folder.remove()
    assert not Path(folder.path).exists()


def test_a_second_trial_at_the_path_of_a_first_one_is_refused() -> None:
    on_host(0).make([])
    try:
        with pytest.raises(LaunchError, match="File exists"):
            on_host(1).make([])
    finally:
        on_host(0).remove()


def test_a_trial_that_was_killed_begins_again_without_what_its_daemons_have_left() -> None:
    alone().make([])
    left = Path(alone().path) / "ompi.4711"
    left.mkdir()
    alone().make([])
    try:
        assert not left.exists()
    finally:
        alone().remove()
