"""Tests of `load` and `pull`: they never leave the trial's outputs or the folder they copy to."""

import os
import pickle
import shutil

import pytest

from jupyter_autotrain.client import outputs
from jupyter_autotrain.errors import AutotrainError


@pytest.fixture
def trial(tmp_path):
    """Return a trial directory, and beside it what must not be reached."""
    directory = tmp_path / "trial"
    for folder in ("work/sub", "outputs"):
        (directory / folder).mkdir(parents=True)
    (directory / "outputs" / "model.pkl").write_bytes(pickle.dumps([1, 2]))
    (directory / "work" / "sub" / "out.csv").write_text("a")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "private.pkl").write_bytes(pickle.dumps("private"))
    return directory


def test_what_was_returned_is_loaded(trial):
    assert outputs.unpickle(trial, "model") == [1, 2]


@pytest.mark.parametrize("name", ["../../outside/private", "/etc/passwd", "a/b", "", ".", "x\0y", "a.pkl", "x" * 300])
def test_load_takes_names_and_no_paths(trial, name):
    with pytest.raises(AutotrainError, match="has not returned"):
        outputs.unpickle(trial, name)


def test_load_follows_no_link_and_waits_for_no_pipe(trial, tmp_path):
    (trial / "outputs" / "linked.pkl").symlink_to(tmp_path / "outside" / "private.pkl")
    os.mkfifo(trial / "outputs" / "pipe.pkl")
    for name in ("linked", "pipe"):
        with pytest.raises(AutotrainError, match="not a regular file"):
            outputs.unpickle(trial, name)
    with pytest.raises(AutotrainError, match="It returned: model, pipe"):
        outputs.unpickle(trial, "absent")


def test_pull_copies_regular_files_only(trial, tmp_path):
    (trial / "work" / "link.csv").symlink_to(tmp_path / "outside" / "private.pkl")
    (trial / "work" / "linked").symlink_to(tmp_path / "outside")
    os.mkfifo(trial / "work" / "pipe")
    assert outputs.copy(trial, tmp_path / "here", outputs.find(trial)) == ["model.pkl", "sub/out.csv"]
    found = {str(path.relative_to(tmp_path / "here")) for path in (tmp_path / "here").rglob("*") if path.is_file()}
    assert found == {"model.pkl", "sub/out.csv"}


def test_folders_of_the_trial_that_are_links_are_not_entered(trial, tmp_path):
    for folder in ("outputs", "work"):
        (trial / folder).rename(trial / f"{folder}.real")
        (trial / folder).symlink_to(tmp_path / "outside")
    assert outputs.copy(trial, tmp_path / "here", outputs.find(trial)) == []
    with pytest.raises(AutotrainError):
        outputs.unpickle(trial, "private")


def test_pull_writes_through_no_link(trial, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    (here / "sub").symlink_to(tmp_path / "outside")
    with pytest.raises(AutotrainError, match="a link lies in the way"):
        outputs.copy(trial, here, outputs.find(trial))
    (here / "sub").unlink()
    (here / "model.pkl").symlink_to(tmp_path / "outside" / "private.pkl")
    with pytest.raises(AutotrainError, match="cannot be written"):
        outputs.copy(trial, here, outputs.find(trial))
    assert pickle.loads((tmp_path / "outside" / "private.pkl").read_bytes()) == "private"


def test_a_folder_that_is_a_link_itself_is_where_the_user_wants_it(trial, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "data")
    outputs.copy(trial, tmp_path / "here", outputs.find(trial))
    assert (tmp_path / "data" / "model.pkl").exists()


def test_pull_never_overwrites_another_file_by_itself(trial, tmp_path):
    found = outputs.find(trial)
    here = tmp_path / "here"
    outputs.copy(trial, here, found)
    assert outputs.copy(trial, here, found) == ["model.pkl", "sub/out.csv"]  # the same again is no other file
    (here / "sub" / "out.csv").write_text("mine")
    (trial / "outputs" / "model.pkl").write_bytes(b"newer")
    with pytest.raises(AutotrainError) as caught:
        outputs.copy(trial, here, found)
    assert "2 other files would be overwritten" in str(caught.value)
    assert "--overwrite" in str(caught.value)
    assert (here / "sub" / "out.csv").read_text() == "mine"
    assert (here / "model.pkl").read_bytes() != b"newer"
    outputs.copy(trial, here, found, overwrite=True)
    assert (here / "sub" / "out.csv").read_text() == "a"
    assert sorted(path.name for path in here.rglob("*") if path.is_file()) == ["model.pkl", "out.csv"]


def test_what_was_returned_hides_no_file_of_the_same_name_that_was_written(trial, tmp_path):
    (trial / "work" / "model.pkl").write_text("written")
    found = outputs.find(trial)
    assert outputs.copy(trial, tmp_path / "here", found) == ["model.pkl", "outputs/model.pkl", "sub/out.csv"]
    assert (tmp_path / "here" / "model.pkl").read_text() == "written"
    assert [one.name for one in outputs.find(trial, written_only=True)] == ["model.pkl", "sub/out.csv"]


def test_copies_of_shipped_files_are_outputs_once_they_were_changed(trial, tmp_path):
    shipped = tmp_path / "files"
    (shipped / "sub").mkdir(parents=True)
    (shipped / "sub" / "out.csv").write_text("a")
    shutil.copystat(trial / "work" / "sub" / "out.csv", shipped / "sub" / "out.csv")
    assert [one.name for one in outputs.find(trial, shipped)] == ["model.pkl"]
    (trial / "work" / "sub" / "out.csv").write_text("a, b")
    assert [(one.name, one.size_bytes) for one in outputs.find(trial, shipped)][1:] == [("sub/out.csv", 4)]


def test_more_than_can_be_copied_at_once_is_told_with_the_place(trial, tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "MOST_FILES", 1)
    with pytest.raises(AutotrainError, match="has left 2 files") as caught:
        outputs.copy(trial, tmp_path / "here", outputs.find(trial))
    assert str(trial / "work") in str(caught.value)
    assert not (tmp_path / "here").exists()
