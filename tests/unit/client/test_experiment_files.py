"""Results of a trial that has put something hostile in their place."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.client import logs, outputs
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.views.log_window import LogTailReader


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    for folder in wire.FOLDERS:
        (tmp_path / "trial" / folder).mkdir(parents=True)
    return tmp_path / "trial"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_logs_of_a_pipe_or_a_link_wait_for_nobody_and_say_why(trial: Path, stream: str) -> None:
    os.mkfifo(trial / "stdout")
    (trial / "stderr").symlink_to("/dev/zero")
    for look in (lambda: logs.read_text(trial, stream, None), lambda: logs.read_tail(trial, stream, 5)):
        with pytest.raises(AutotrainError, match="not a regular file"):
            look()
    assert "not a regular file" in LogTailReader(trial / stream).read().text


def test_an_object_behind_a_link_or_a_pipe_is_not_loaded(trial: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs.pkl").write_bytes(pickle.dumps("theirs"))
    (trial / "outputs" / "a.pkl").symlink_to(tmp_path / "theirs.pkl")
    os.mkfifo(trial / "outputs" / "b.pkl")
    for name in ("a", "b", "../../theirs"):
        with pytest.raises(AutotrainError, match=r"has not returned .*(regular file|no path inside)"):
            outputs.unpickle(trial, name)


def test_outputs_that_are_a_link_themselves_are_not_entered(trial: Path, tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps("theirs"))
    (trial / "outputs").rmdir()
    (trial / "outputs").symlink_to(tmp_path)
    with pytest.raises(AutotrainError, match="outputs, which is a link"):
        outputs.unpickle(trial, "a")


def test_pull_takes_regular_files_and_nothing_that_leads_out(trial: Path, tmp_path: Path) -> None:
    (trial / "work" / "deep").mkdir()
    (trial / "work" / "deep" / "kept.txt").write_text("kept")
    os.mkfifo(trial / "work" / "pipe")
    (trial / "work" / "root").symlink_to("/")
    (trial / "outputs").rmdir()
    (trial / "outputs").symlink_to("/etc")
    assert outputs.copy(trial, tmp_path / "here", outputs.find(trial)) == ["deep/kept.txt"]


def test_pull_of_a_tidied_trial_that_made_nothing_gives_nothing(tmp_path: Path) -> None:
    assert outputs.copy(tmp_path, tmp_path / "here", outputs.find(tmp_path)) == []
