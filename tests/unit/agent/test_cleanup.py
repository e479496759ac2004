"""Tests of what is taken away when a trial has ended, and what stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.cell_runner import _link
from jupyter_autotrain.agent.supervisor.termination import remove_temporary_files


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    for name in ("helper.py", "pkg/module.py", "pkg/data/x.csv"):
        path = tmp_path / "bundle" / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path / "bundle"


@pytest.fixture
def trial(tmp_path: Path, bundle: Path) -> Path:
    directory = tmp_path / "trial"
    for folder in wire.FOLDERS:
        (directory / folder).mkdir(parents=True)
    _link(f"{bundle}/files", f"{directory}/work", f"{directory}/draft")
    for name in ("trial.json", "status.json.7.8.draft", "control/stop"):
        (directory / name).write_text("x")
    for name in ("stdout", "stderr"):
        (directory / name).touch()
    return directory


def left(trial: Path) -> list[str]:
    return sorted(str(path.relative_to(trial)) for path in trial.rglob("*"))


def test_nothing_is_left_of_a_trial_that_made_nothing(trial: Path, bundle: Path) -> None:
    (trial / "work" / "pkg" / "__pycache__").mkdir()
    (trial / "work" / "pkg" / "__pycache__" / "module.cpython-311.pyc").write_text("")
    remove_temporary_files(str(trial), str(bundle))
    assert left(trial) == []


def test_what_the_trial_made_stays_also_beside_shipped_files_and_as_links(trial: Path, bundle: Path) -> None:
    (trial / "work" / "pkg" / "mine.txt").write_text("mine")
    (trial / "work" / "latest").symlink_to("pkg/mine.txt")
    (trial / "work" / "helper.py").unlink()
    (trial / "work" / "helper.py").write_text("mine now")
    (trial / "stdout").write_text("said")
    (trial / "checkpoints" / "step-1.pkl").write_text("")
    remove_temporary_files(str(trial), str(bundle))
    assert left(trial) == [
        "checkpoints", "checkpoints/step-1.pkl", "stdout", "work", "work/helper.py", "work/latest", "work/pkg",
        "work/pkg/mine.txt",
    ]  # fmt: skip


def test_a_link_to_another_folder_is_not_followed(trial: Path, bundle: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "__pycache__").mkdir(parents=True)
    (theirs / "__pycache__" / "kept.pyc").write_text("")
    (theirs / "module.py").symlink_to(bundle / "files" / "pkg" / "module.py")
    for path in ("work/pkg/module.py", "work/pkg/data/x.csv"):
        (trial / path).unlink()
    (trial / "work" / "pkg" / "data").rmdir()
    (trial / "work" / "pkg").rmdir()
    (trial / "work" / "pkg").symlink_to(theirs)
    (trial / "control" / "stop").unlink()
    (trial / "control").rmdir()
    (trial / "control").symlink_to(theirs)
    remove_temporary_files(str(trial), str(bundle))
    assert (theirs / "module.py").is_symlink()
    assert (theirs / "__pycache__" / "kept.pyc").exists()


def test_folders_of_any_depth_and_a_directory_that_is_gone_raise_nothing(trial: Path, bundle: Path) -> None:
    deep = trial / "work"
    for _ in range(60):
        deep = deep / ("d" * 50)
    deep.mkdir(parents=True)
    remove_temporary_files(str(trial), str(bundle))
    remove_temporary_files(str(trial / "nowhere"), "")
    assert deep.is_dir()
