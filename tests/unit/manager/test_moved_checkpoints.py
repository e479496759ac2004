"""Trials that go on from checkpoints which only the backend of their attempt before has."""

from __future__ import annotations

import json
import sys
from concurrent.futures import Executor
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.attempt import KeptCheckpoints
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.errors import BackendError, BackendUnavailableError
from jupyter_autotrain.manager.reasons import explain
from jupyter_autotrain.manager.start import ManagerStatus

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
    """Return a trial whose first attempt has failed on `lab`, with checkpoints that were too large to come."""
    world.submit(backends=(LAB, HERE), trials=1, retries=1, resources=Resources(cpus=1.0))
    world.step()
    directory = world.home.trial("id0", 1, 1)
    directory.mkdir(parents=True, exist_ok=True)
    KeptCheckpoints(JobRef("lab", "id0-1-1"), SIZES).write(directory)
    return backends["lab"].job(1)


def fetch_from(backend, path=None, failures=0):
    """Let a backend give files; of one, or of any, it fails so many times before."""
    left = [failures]

    def fetch(ref, asked, target):
        if left[0] and path in {None, asked}:
            left[0] -= 1
            raise BackendUnavailableError("gpu1 does not answer.")
        Path(target).parent.mkdir(exist_ok=True)
        Path(target).write_text(f"{ref.job_id} {asked}")
        backend.fetched.append(asked)

    backend.fetch = fetch


def moves_here(world, backends, job):
    """End a trial's first attempt while only the other backend answers."""
    backends["lab"].refuses = "no route to host"
    backends["lab"].refusal = BackendUnavailableError
    job.end(TrialState.FAILED, "out of memory")
    world.step(8)


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


def test_why_it_is_there_is_said_too_where_no_other_backend_could_take_it(world, backends, fails_on_lab, monkeypatch):
    module = sys.modules["jupyter_autotrain.manager.reasons"]
    monkeypatch.setattr(module, "status", lambda home: ManagerStatus(alive=True))
    backends["here"].unusable = "no answer"
    backends["here"].unusable_for_good = False
    world.restart()
    world.step()
    fails_on_lab.end(TrialState.FAILED, "out of memory")
    world.step()
    assert explain(world.store, world.home, "mnist@1") == ["Trial 1 was put on lab, where its checkpoints are."]


def test_they_come_by_the_home_where_another_backend_takes_the_trial(world, backends, fails_on_lab):
    fetch_from(backends["lab"])
    moves_here(world, backends, fails_on_lab)
    assert second_attempt(world).placement.backend == "here"
    assert backends["lab"].fetched == ["checkpoints/first.pt", "checkpoints/last.pt"]
    saved = world.home.trial("id0", 1, 1) / wire.CHECKPOINTS
    assert (saved / "last.pt").read_text() == "id0-1-1 checkpoints/last.pt"
    assert KeptCheckpoints.read(saved.parent).sizes == {}
    assert notes(world) == []


def test_those_of_an_attempt_before_the_last_come_where_the_last_has_saved_none(world, backends):
    world.submit(backends=(LAB, HERE), trials=1, retries=2, resources=Resources(cpus=1.0))
    world.step()
    saved = world.home.trial("id0", 1, 1)
    saved.mkdir(parents=True, exist_ok=True)
    KeptCheckpoints(JobRef("lab", "id0-1-1"), SIZES).write(saved)
    backends["lab"].job(1).end(TrialState.FAILED, "out of memory")
    world.step()
    (world.home.trial("id0", 1, 2) / wire.CHECKPOINTS).mkdir(parents=True)
    fetch_from(backends["lab"])
    moves_here(world, backends, backends["lab"].job(1, 2))
    assert backends["here"].job(1, 3).trial.resume_attempt is not None
    assert (saved / wire.CHECKPOINTS / "last.pt").read_text() == "id0-1-1 checkpoints/last.pt"
    assert notes(world) == []


def test_those_left_behind_come_after_all_where_the_attempt_that_began_anew_has_saved_none(
    world, backends, fails_on_lab
):
    fetch_from(backends["lab"], failures=10_000)
    moves_here(world, backends, fails_on_lab)
    assert backends["here"].job(1, 2).trial.resume_attempt is None
    fetch_from(backends["lab"])
    backends["here"].job(1, 2).end(TrialState.FAILED, "out of memory")
    world.step(4)
    world.request("retry", "id0")
    world.step(8)
    assert backends["here"].job(1, 3).trial.resume_attempt is not None
    assert backends["lab"].fetched == ["checkpoints/first.pt", "checkpoints/last.pt"]


def test_a_backend_that_does_not_answer_for_a_moment_is_waited_for(world, backends, fails_on_lab):
    fetch_from(backends["lab"], failures=5)
    moves_here(world, backends, fails_on_lab)
    assert backends["here"].job(1, 2).trial.resume_attempt == 1
    assert KeptCheckpoints.read(world.home.trial("id0", 1, 1)).sizes == {}


def test_an_attempt_never_goes_on_from_a_part_of_them_and_says_that_it_begins_anew(world, backends, fails_on_lab):
    fetch_from(backends["lab"], path="checkpoints/last.pt", failures=10_000)
    moves_here(world, backends, fails_on_lab)
    trial = backends["here"].job(1, 2).trial
    assert trial.resume_attempt is None
    assert trial.resume_note == "starts over: 3 GB of its checkpoints stay on lab: gpu1 does not answer."
    assert KeptCheckpoints.read(world.home.trial("id0", 1, 1)).sizes == {"checkpoints/last.pt": 3_000_000_000}
    assert sum(world.pauses) < 120


def test_an_attempt_begins_anew_where_the_backend_that_has_them_cannot_be_made_any_more(world, backends, fails_on_lab):
    def create(profile):
        if profile.name == "lab":
            raise BackendError("its package was removed")
        return backends[profile.name]

    world.create_backend_of = create
    world.restart()
    world.step(8)
    world.request("retry", "id0")  # by itself it is not tried again, as it may still run there
    world.step(8)
    assert second_attempt(world).state is TrialState.RUNNING
    assert backends["here"].job(1, 2).trial.resume_attempt is None
    assert "its package was removed" in backends["here"].job(1, 2).trial.resume_note


@pytest.mark.parametrize(
    "note",
    [
        [1],
        {"ref": {"backend": "moon", "job_id": "id0-1-1"}, "sizes": SIZES},
        {"ref": {"backend": "lab", "job_id": "id0-2-1"}, "sizes": SIZES},
        {"ref": {"backend": "lab", "job_id": "id0-1-1"}, "sizes": {"checkpoints/../../x": 3}},
    ],
)
def test_a_note_that_the_trial_has_written_itself_ends_nothing_and_fetches_nothing(world, backends, fails_on_lab, note):
    fetch_from(backends["lab"])
    (world.home.trial("id0", 1, 1) / wire.KEPT_FILE).write_text(json.dumps(note))
    moves_here(world, backends, fails_on_lab)
    assert second_attempt(world).state is TrialState.RUNNING
    assert backends["lab"].fetched == []


class Held(Executor):
    """Calls that begin when the test says so."""

    def __init__(self):
        self.calls = []

    def submit(self, fn, /, *args, **kwargs):
        self.calls.append(lambda: fn(*args, **kwargs))

    def run(self):
        while self.calls:
            self.calls.pop(0)()


@pytest.fixture
def moving(world, backends, fails_on_lab):
    """Return the calls of a move that has still to begin; `at_once` is where they run else."""
    fetch_from(backends["lab"])
    at_once = world.moves
    world.moves = held = Held()
    world.restart()
    moves_here(world, backends, fails_on_lab)
    assert second_attempt(world).state is TrialState.PREPARING
    held.at_once = at_once
    return held


def test_a_move_keeps_no_thread_from_other_calls(world, backends, moving):
    other = world.submit(backends=(HERE,), trials=1, experiment_id="other")
    world.step(4)
    assert (world.states(other), len(moving.calls)) == (["RUNNING"], 1)
    assert world.store.block_reasons("id0") == {1: "waits for its checkpoints"}


def test_a_stop_ends_a_trial_at_once_whose_checkpoints_are_on_their_way(world, backends, moving):
    request = world.request("stop", "id0")
    world.step(2)
    assert second_attempt(world).state is TrialState.CANCELLED
    assert world.store.request(request).result["unreported"] == []
    moving.run()
    assert backends["lab"].fetched == []
    assert backends["here"].jobs == {}


def test_a_stop_during_one_file_brings_no_further_one(world, backends, moving):
    fetch = backends["lab"].fetch

    def fetch_and_stop(ref, path, target):
        fetch(ref, path, target)
        world.request("stop", "id0")
        world.step(2)

    backends["lab"].fetch = fetch_and_stop
    moving.run()
    assert backends["lab"].fetched == ["checkpoints/first.pt"]
    assert KeptCheckpoints.read(world.home.trial("id0", 1, 1)).sizes == {"checkpoints/last.pt": 3_000_000_000}
    assert backends["here"].jobs == {}


def test_the_next_manager_goes_on_with_a_move(world, backends, moving):
    def killed(ref, path, target):
        if path == "checkpoints/last.pt":
            raise SystemExit
        Path(target).parent.mkdir(exist_ok=True)
        Path(target).write_text("whole")

    backends["lab"].fetch = killed
    with pytest.raises(SystemExit):
        moving.run()
    fetch_from(backends["lab"])
    world.moves = moving.at_once
    world.restart()
    world.step(4)
    assert second_attempt(world).state is TrialState.RUNNING
    assert backends["here"].job(1, 2).trial.resume_attempt == 1
    assert backends["lab"].fetched == ["checkpoints/last.pt"]


def test_a_stop_after_a_restart_submits_what_may_run_already_and_cancels_it(world, backends, moving):
    world.restart()
    world.step(2)
    world.request("stop", "id0")
    world.step(20)
    assert second_attempt(world).state is TrialState.CANCELLED
    assert backends["here"].cancelled == ["id0-1-2"]
    assert backends["lab"].fetched == []
