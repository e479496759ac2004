"""Deleted experiments leave no trial directory on their hosts; what a silent host keeps is removed by `clean`."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.client import Experiment, leftovers
from jupyter_autotrain.core.home import Home, home_identity
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import SshLab
from tests.labs.ssh_trials import COUNTS, LabBackends, end_with_supervisor, start, supervisors
from tests.ssh.served_home import ServedHome, until

pytestmark = pytest.mark.fault


def trials_of(lab: SshLab, home: Home, experiment_id: str) -> list[Path]:
    """Return the trial directories of an experiment on all hosts."""
    name = home_identity(home)
    folders = [host.home() / ".autotrain" / "jobs" / name for host in lab.hosts]
    return [path for folder in folders for path in folder.glob(f"{experiment_id}-*")]


@pytest.fixture
def ended(served: ServedHome, lab: SshLab) -> ServedHome:
    """Two experiments, `kept` and `gone`, whose trials have ended on two hosts."""
    for name in ("kept", "gone"):
        served.values(name, served.lab(("h1", "h2")), trials=2)
        assert trials_of(lab, served.home, name)
    until(lambda: not any(supervisors(host) for host in lab.hosts), "the end of all supervisors")
    return served


def test_a_deleted_experiment_has_no_trial_directory_on_any_host(ended: ServedHome, lab: SshLab) -> None:
    Experiment(ended.home, ended.store, "gone", {}).delete()
    assert trials_of(lab, ended.home, "gone") == []
    assert len(trials_of(lab, ended.home, "kept")) == 2


def test_what_the_manager_deletes_goes_from_the_hosts_too(ended: ServedHome, lab: SshLab) -> None:
    ended.store.add_request("clean", "gone", {}, time.time())
    manager.notify(ended.home)
    until(lambda: not trials_of(lab, ended.home, "gone"), "the deletion on the hosts")
    assert len(trials_of(lab, ended.home, "kept")) == 2


def test_what_a_host_that_does_not_answer_keeps_of_a_deletion_clean_removes(ended: ServedHome, lab: SshLab) -> None:
    (path, *_) = trials_of(lab, ended.home, "gone")
    host = next(host for host in lab.hosts if path.is_relative_to(host.folder))
    host.cut()
    Experiment(ended.home, ended.store, "gone", {}).delete()
    asking = [thread for thread in threading.enumerate() if thread.name == "autotrain-ask"]  # goes on after the delete
    wait_until(lambda: not any(thread.is_alive() for thread in asking), "the deletion's giving up")
    there = trials_of(lab, ended.home, "gone")
    assert there
    assert all(path.is_relative_to(host.folder) for path in there)
    host.heal()

    def told() -> list[str]:
        return [name for place in leftovers.find(ended.home, ended.store) for name in place.names]

    (left,) = wait_until(lambda: [name for name in told() if name.startswith("trials of ")], "the host's answer")
    assert left.startswith("trials of gone, which was deleted (")
    (removed,) = leftovers.remove(ended.home, ended.store)
    assert left in removed.names
    assert trials_of(lab, ended.home, "gone") == []
    assert len(trials_of(lab, ended.home, "kept")) == 2
    assert left not in told()


def test_a_trial_that_runs_is_neither_told_nor_removed(make: LabBackends, home: Home, lab: SshLab) -> None:
    backend = make(home)
    first = start(backend, home, "", experiment_id="e1")
    end_with_supervisor(backend, first)
    running = start(backend, home, COUNTS, experiment_id="e2")
    assert set(backend.experiments_there()) == {"e1"}
    backend.remove_experiments(["e1", "e2"])
    assert trials_of(lab, home, "e1") == []
    backend.put(running, "control/enough", b"")
    end_with_supervisor(backend, running)
    assert backend.experiments_there()["e2"] > 0
    backend.remove_experiments(["e2"])
    assert backend.experiments_there() == {}
