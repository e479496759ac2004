"""What `load` and `pull` take, and that they never leave the trial's outputs or the folder they copy to."""

import os
import pickle

import pytest

from jupyter_autotrain.client import files
from jupyter_autotrain.errors import AutotrainError


@pytest.fixture
def trial(tmp_path):
    """A trial directory, and beside it what must not be reached."""
    directory = tmp_path / "trial"
    for folder in ("work/sub", "outputs"):
        (directory / folder).mkdir(parents=True)
    (directory / "outputs" / "model.pkl").write_bytes(pickle.dumps([1, 2]))
    (directory / "work" / "sub" / "out.csv").write_text("a")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "private.pkl").write_bytes(pickle.dumps("private"))
    return directory


def test_what_was_returned_is_loaded(trial):
    assert files.unpickle(trial, "model") == [1, 2]


@pytest.mark.parametrize("name", ["../../outside/private", "/etc/passwd", "a/b", "", ".", "x\0y", "a.pkl", "x" * 300])
def test_load_takes_names_and_no_paths(trial, name):
    with pytest.raises(AutotrainError, match="has not returned"):
        files.unpickle(trial, name)


@pytest.mark.timeout(20)
def test_load_follows_no_link_and_waits_for_no_pipe(trial, tmp_path):
    (trial / "outputs" / "linked.pkl").symlink_to(tmp_path / "outside" / "private.pkl")
    os.mkfifo(trial / "outputs" / "pipe.pkl")
    for name in ("linked", "pipe"):
        with pytest.raises(AutotrainError, match="not a regular file"):
            files.unpickle(trial, name)
    with pytest.raises(AutotrainError, match="It returned: model, pipe"):
        files.unpickle(trial, "absent")


@pytest.mark.timeout(20)
def test_pull_copies_regular_files_only(trial, tmp_path):
    (trial / "work" / "link.csv").symlink_to(tmp_path / "outside" / "private.pkl")
    (trial / "work" / "linked").symlink_to(tmp_path / "outside")
    os.mkfifo(trial / "work" / "pipe")
    assert files.copy_outputs(trial, tmp_path / "here") == ["model.pkl", "sub/out.csv"]
    found = {str(path.relative_to(tmp_path / "here")) for path in (tmp_path / "here").rglob("*") if path.is_file()}
    assert found == {"model.pkl", "sub/out.csv"}


def test_folders_of_the_trial_that_are_links_are_not_entered(trial, tmp_path):
    for folder in ("outputs", "work"):
        (trial / folder).rename(trial / f"{folder}.real")
        (trial / folder).symlink_to(tmp_path / "outside")
    assert files.copy_outputs(trial, tmp_path / "here") == []
    with pytest.raises(AutotrainError):
        files.unpickle(trial, "private")


def test_pull_writes_through_no_link(trial, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    (here / "sub").symlink_to(tmp_path / "outside")
    with pytest.raises(AutotrainError, match="a link lies in the way"):
        files.copy_outputs(trial, here)
    (here / "sub").unlink()
    (here / "model.pkl").symlink_to(tmp_path / "outside" / "private.pkl")
    with pytest.raises(AutotrainError, match="cannot be written"):
        files.copy_outputs(trial, here)
    assert pickle.loads((tmp_path / "outside" / "private.pkl").read_bytes()) == "private"


def test_a_folder_that_is_a_link_itself_is_where_the_user_wants_it(trial, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "data")
    files.copy_outputs(trial, tmp_path / "here")
    assert (tmp_path / "data" / "model.pkl").exists()
