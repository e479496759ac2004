"""Shared memory that MPICH leaves behind is removed; that of other jobs stays."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

from jupyter_autotrain.agent.launchers import mpi_nodes


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_that_no_process_uses_are_removed(tmp_path: Path) -> None:
    (tmp_path / "mpich_shm_8f_0").write_bytes(b"x")
    (tmp_path / "mpich_vci_8f_0").write_bytes(b"x")
    mpi_nodes.remove_unused(time.time() - 60, str(tmp_path))
    assert names(tmp_path) == []


def test_files_of_another_job_stay_while_it_has_them_open_or_mapped(tmp_path: Path) -> None:
    mapped = tmp_path / "mpich_shm_1a_0"
    opened = tmp_path / "mpich_shm_2b_0"
    mapped.write_bytes(b"x")
    with mapped.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 1)
    with memory, opened.open("wb"):
        mpi_nodes.remove_unused(time.time() - 60, str(tmp_path))
        assert names(tmp_path) == [mapped.name, opened.name]


def test_files_that_were_there_before_and_files_of_others_stay(tmp_path: Path) -> None:
    old = tmp_path / "mpich_shm_8f_0"
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    (tmp_path / "cache").write_bytes(b"x")
    mpi_nodes.remove_unused(time.time() - 60, str(tmp_path))
    assert names(tmp_path) == ["cache", "mpich_shm_8f_0"]


def test_a_file_that_another_trial_removes_at_the_same_time_keeps_no_other(tmp_path: Path, monkeypatch) -> None:
    for name in ("mpich_shm_1a_0", "mpich_shm_2b_0"):
        (tmp_path / name).write_bytes(b"x")
    listed = ["mpich_shm_0c_0", *names(tmp_path)]
    monkeypatch.setattr(os, "listdir", lambda _: listed)
    mpi_nodes.remove_unused(time.time() - 60, str(tmp_path))
    monkeypatch.undo()
    assert names(tmp_path) == []


def test_a_machine_without_shared_memory_has_nothing_to_remove(tmp_path: Path) -> None:
    mpi_nodes.remove_unused(0.0, str(tmp_path / "nowhere"))
