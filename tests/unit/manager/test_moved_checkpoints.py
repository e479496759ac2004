"""Trials that go on from checkpoints which only the backend of their attempt before has."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.kept_checkpoints import KeptCheckpoints
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendUnavailableError

HERE = BackendChoice(Profile("here", "test"))
LAB = BackendChoice(Profile("lab", "test", {"hosts": ["gpu1"]}))
SIZES = {"checkpoints/first.pt": 2_000_000_000, "checkpoints/last.pt": 3_000_000_000}


@pytest.fixture
def backends(world):
    """One of one CPU here, and one elsewhere, by the names of their profiles."""
    made = {"here": type(world.backend)(), "lab": type(world.backend)()}
    for name, backend in made.items():
        backend.name = name
        backend.inventory = Inventory((Node(name, 1.0, machine_id=name),))
        backend.fetched = []
    world.create_backend_of = lambda profile: made[profile.name]
    return made


@pytest.fixture
def fails_on_lab(world, backends):
    """A trial whose first attempt has failed on `lab`, with checkpoints that were too large to come."""
    world.submit(backends=(LAB, HERE), trials=1, retries=1, resources=Resources(cpus=1.0))
    world.step()
    directory = world.home.trial("id0", 1, 1)
    directory.mkdir(parents=True, exist_ok=True)
    KeptCheckpoints(JobRef("lab", "id0-1-1"), SIZES).write(directory)
    return backends["lab"].job(1)


def fetch_from(backend):
    def fetch(ref, path, target):
        Path(target).parent.mkdir(exist_ok=True)
        Path(target).write_text(f"{ref.job_id} {path}")
        backend.fetched.append(path)

    backend.fetch = fetch


def second_attempt(world):
    (trial,) = world.trials("id0")
    assert trial.attempt == 2
    return trial


def notes(world):
    return [note.text for note in world.store.notes("id0")]


def test_the_next_attempt_goes_on_at_once_where_its_checkpoints_are(world, backends, fails_on_lab):
    fetch_from(backends["lab"])
    fails_on_lab.end(TrialState.FAILED, "out of memory")
    world.step()
    assert second_attempt(world).placement.backend == "lab"
    assert backends["lab"].fetched == []
    reasons = [change.reason for change in world.store.state_changes("id0") if change.attempt == 2]
    assert "lab, where its checkpoints are" in reasons


def test_they_come_by_the_home_where_another_backend_takes_the_trial(world, backends, fails_on_lab):
    fetch_from(backends["lab"])
    backends["lab"].refuses = "no route to host"
    backends["lab"].refusal = BackendUnavailableError
    fails_on_lab.end(TrialState.FAILED, "out of memory")
    world.step(8)
    assert second_attempt(world).placement.backend == "here"
    assert backends["lab"].fetched == ["checkpoints/first.pt", "checkpoints/last.pt"]
    saved = world.home.trial("id0", 1, 1) / wire.CHECKPOINTS
    assert (saved / "last.pt").read_text() == "id0-1-1 checkpoints/last.pt"
    assert KeptCheckpoints.read(saved.parent).sizes == {}
    assert notes(world) == []


def test_what_cannot_be_had_is_told_with_the_attempt_that_goes_on_without(world, backends, fails_on_lab):
    lab = backends["lab"]

    def fetch(ref, path, target):
        if path == "checkpoints/last.pt":
            raise BackendUnavailableError("gpu1 does not answer.")

    lab.fetch = fetch
    lab.refuses = "no route to host"
    lab.refusal = BackendUnavailableError
    fails_on_lab.end(TrialState.FAILED, "out of memory")
    world.step(8)
    assert second_attempt(world).placement.backend == "here"
    assert notes(world) == ["goes on without 3 GB of its checkpoints, which stay on lab: gpu1 does not answer."]
    assert KeptCheckpoints.read(world.home.trial("id0", 1, 1)).sizes == {"checkpoints/last.pt": 3_000_000_000}
