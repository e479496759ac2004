"""The code of trials on a cluster stays while an experiment there needs it, and goes then."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from jupyter_autotrain.agent.slurm import leftovers


def make_code(root: Path, name: str) -> Path:
    folder = root / leftovers.FOLDER / name
    for path, content in {"main.py": name, "data/x.bin": f"data of {name}"}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
        blob = root / "blobs" / hashlib.sha256(content.encode()).hexdigest()
        blob.parent.mkdir(exist_ok=True)
        blob.write_text(content)
    return folder


def task_of(root: Path, trial: str, code: Path) -> Mapping[str, object]:
    """Return a trial that has been handed over with its code."""
    directory = root / "jobs" / trial
    directory.mkdir(parents=True)
    return {"directory": str(directory), "trial": {"bundle": str(code)}}


def left(root: Path) -> list[str]:
    return sorted(path.name for path in (root / leftovers.FOLDER).iterdir())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder of ours with the code `old`, whose only experiment has no trial directory any more."""
    trial = task_of(tmp_path, "home1/gone-1-1", make_code(tmp_path, "old"))
    assert leftovers.use(tmp_path, [trial])
    shutil.rmtree(str(trial["directory"]))
    return tmp_path


def test_code_goes_with_its_last_experiment_and_with_it_the_files_it_was_received_as(root: Path) -> None:
    assert leftovers.use(root, [task_of(root, "home1/e1-1-1", make_code(root, "used"))])
    leftovers.remove_unneeded(root)
    assert left(root) == ["used"]
    assert sorted(path.read_text() for path in (root / "blobs").iterdir()) == ["data of used", "used"]
    assert [path.name for path in (root / "kept_users").iterdir()] == ["used"]


@pytest.mark.parametrize("trial", ["home1/e2-1-1", "home2/gone-1-1"])
def test_code_stays_while_another_experiment_has_the_same_or_one_of_another_home(root: Path, trial: str) -> None:
    assert leftovers.use(root, [task_of(root, trial, root / leftovers.FOLDER / "old")])
    leftovers.remove_unneeded(root)
    assert left(root) == ["old"]
    shutil.rmtree(root / "jobs" / trial)
    leftovers.remove_unneeded(root)
    assert left(root) == []


def test_code_that_was_sent_for_a_trial_that_is_still_to_be_handed_over_stays(root: Path) -> None:
    make_code(root, "new")
    leftovers.remove_unneeded(root)
    assert left(root) == ["new"]


def test_code_that_went_is_told_before_slurm_gets_the_trial(root: Path) -> None:
    leftovers.remove_unneeded(root)
    code = root / leftovers.FOLDER / "old"
    assert not leftovers.use(root, [task_of(root, "home1/e2-1-1", code)])
    make_code(root, "old")
    assert leftovers.use(root, [task_of(root, "home1/e2-2-1", code)])


def test_while_code_is_received_nothing_goes_and_what_is_half_removed_goes_the_next_time(root: Path) -> None:
    make_code(root, "gone.removed-123")
    (root / leftovers.FOLDER / "new.draft-1").mkdir()
    receiver = os.open(root / "blobs", os.O_RDONLY)
    fcntl.flock(receiver, fcntl.LOCK_SH)
    leftovers.remove_unneeded(root)
    assert left(root) == ["gone.removed-123", "new.draft-1", "old"]
    os.close(receiver)
    leftovers.remove_unneeded(root)
    assert left(root) == ["new.draft-1"]


def test_a_cluster_that_never_had_any_code_is_no_error(tmp_path: Path) -> None:
    leftovers.remove_unneeded(tmp_path / "new")
