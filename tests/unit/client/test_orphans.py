"""Tests that what killed processes left is found and removed; what may still be in the making never is."""

from __future__ import annotations

import os
import socket

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.client import orphans
from jupyter_autotrain.client.orphans import draft
from jupyter_autotrain.client.send import send
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Store

SPEC = ExperimentSpec("digits", Bundle())


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(manager, "ensure", lambda home: None)
    monkeypatch.setattr(manager, "notify", lambda home, message=None: True)
    return Home(tmp_path / "home")


@pytest.fixture
def store(home):
    with Store.open(home) as store:
        yield store


def write(folder):
    folder.mkdir()
    (folder / "main.py").write_text("pass")
    return Bundle()


def names(found):
    return [leftover.path.name for leftover in found]


def test_drafts_and_folders_of_killed_submits_are_found_and_removed_and_nothing_else(home, store):
    kept = send(home, SPEC, write, {})
    write(home.drafts / "killed-early")
    home.experiment("killed-late").mkdir()
    write(home.bundle("killed-late"))
    assert names(orphans.find(home, store)) == ["killed-early", "killed-late"]
    assert all(leftover.size_bytes == 4 for leftover in orphans.find(home, store))
    assert sorted(names(orphans.remove(home, store))) == ["killed-early", "killed-late"]
    assert orphans.find(home, store) == []
    assert (home.bundle(kept.id) / "main.py").exists()
    assert list(home.drafts.iterdir()) == []


def test_nothing_of_a_submit_under_way_counts_as_left(home, store):
    def look(folder):
        assert orphans.find(home, store) == orphans.remove(home, store) == []
        return write(folder)

    kept = send(home, SPEC, look, {})
    assert (home.bundle(kept.id) / "main.py").exists()


def test_a_submit_is_under_way_until_its_transaction(home, store, monkeypatch):
    keep = Store.add_experiment
    seen = []

    def look(*arguments):
        seen.append(orphans.remove(home, store))
        return keep(*arguments)

    monkeypatch.setattr(Store, "add_experiment", look)
    kept = send(home, SPEC, write, {})
    assert seen == [[]]
    assert (home.bundle(kept.id) / "main.py").exists()


def test_half_written_files_of_dead_processes_are_removed_and_those_of_living_ones_stay(home, store):
    trial = home.trial(send(home, SPEC, write, {}).id, 1, 1)
    (trial / "control").mkdir(parents=True)
    dead = 1 << 22  # the kernel gives smaller ones only
    alive = os.getpid()
    left = [
        home.root / f"x.{dead}.7.draft",
        trial.parents[2] / f"waiting.json.{dead}.7.draft",
        trial / f"status.json.{dead}.7.draft",
        trial / "control" / f"stop.{dead}.7.draft",
    ]
    others = [trial / f"status.json.{alive}.7.draft", trial / "my.draft", trial / "outputs.1.1.draft"]
    others[2].mkdir()
    for path in (*left, *others[:2]):
        path.write_text("")
    assert set(names(orphans.find(home, store))) == {path.name for path in left}
    orphans.remove(home, store)
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in others)


def test_folders_with_trials_that_the_store_does_not_know_are_named_and_never_removed(home, store):
    home.trial("lost", 1, 1).mkdir(parents=True)
    assert orphans.without_row(home, store) == [home.experiment("lost")]
    assert orphans.remove(home, store) == []
    assert home.trial("lost", 1, 1).exists()


def test_a_delete_that_is_killed_half_way_leaves_a_draft_and_no_lost_folder(home, store, monkeypatch):
    handle = send(home, SPEC, write, {})
    home.trial(handle.id, 1, 1).mkdir(parents=True)
    store.close_experiment(handle.id, 1.0)

    def kill(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", kill)
    with pytest.raises(KeyboardInterrupt):
        handle.delete()
    monkeypatch.undo()
    assert orphans.without_row(home, store) == []
    assert names(orphans.remove(home, store)) == [handle.id]


def test_a_home_without_experiments_has_nothing_left(home, store):
    assert orphans.find(home, store) == orphans.remove(home, store) == orphans.without_row(home, store) == []


def test_who_submits_waits_for_nobody(home):
    home.root.mkdir()
    with draft(home, "one"), draft(home, "two") as folder:
        assert folder.is_dir()


def test_the_socket_of_an_earlier_version_is_removed_and_that_of_this_one_stays(home, store):
    for name in ("doorbell", "manager.sock"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
            made.bind(str(home.root / name))
    assert names(orphans.find(home, store)) == ["doorbell"]
    orphans.remove(home, store)
    assert not (home.root / "doorbell").exists()
    assert home.wakeup_socket.is_socket()
