"""An experiment on several backends: each trial has one, and keeps it."""

from __future__ import annotations

import pytest

from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.errors import BackendError

BOTH = (BackendChoice(Profile("here", "test")), BackendChoice(Profile("lab", "test", {"hosts": ["a"]})))


@pytest.fixture
def two_backends(world):
    """Two backends of one CPU each, by the names of their profiles."""
    backends = {"here": type(world.backend)(), "lab": type(world.backend)()}
    for name, backend in backends.items():
        backend.name = name
        backend.inventory = Inventory((Node(name, 1.0, 8_000_000_000),))
    world.create_backend_of = lambda profile: backends[profile.name]
    return backends


def test_each_trial_is_put_on_the_first_backend_that_has_what_it_asks_for(world, two_backends):
    world.submit(backends=BOTH, trials=3, concurrency=3, resources=Resources(cpus=1.0))
    world.step()
    trials = world.trials("id0")
    assert [trial.placement.backend for trial in trials] == ["here", "lab", ""]
    assert {name: list(backend.jobs) for name, backend in two_backends.items()} == {
        "here": ["id0-1-1"],
        "lab": ["id0-2-1"],
    }
    (reason,) = world.store.block_reasons("id0").values()
    assert "on here it waits for 1 CPU" in reason
    assert "on lab it waits for 1 CPU" in reason


def test_a_backend_that_a_client_is_about_to_use_is_asked_before_its_experiment_comes(world):
    asked = []

    def create(profile):
        asked.append(profile.key)
        return world.backend

    world.create_backend_of = create
    lab = BOTH[1]
    world.step(1, [{"prepare": to_json(lab.profile)}])
    assert asked == [lab.profile.key]
    world.submit(backends=(lab,))
    world.step()
    assert asked == [lab.profile.key]
    assert world.states("id0") == ["RUNNING"]


@pytest.mark.parametrize("profile", [None, {}, {"name": "lab"}, "lab", {"name": "lab", "type": "test", "options": 3}])
def test_a_message_that_names_no_profile_changes_nothing(world, profile):
    world.step(1, [{"prepare": profile}])
    world.submit()
    world.step()
    assert world.states("id0") == ["RUNNING"]


def test_a_trial_is_found_again_on_its_backend_by_the_next_manager(world, two_backends):
    world.submit(backends=BOTH, trials=2, concurrency=2, resources=Resources(cpus=1.0))
    world.step()
    world.restart()
    world.step()
    two_backends["lab"].job(2).end()
    world.step()
    assert world.states("id0") == ["RUNNING", "SUCCEEDED"]
    assert all(job.starts == 1 for backend in two_backends.values() for job in backend.jobs.values())


def test_an_experiment_goes_on_where_one_of_its_backends_cannot_be_made(world, two_backends):
    def create(profile):
        if profile.name == "here":
            raise BackendError("There is no backend 'here'.")
        return two_backends[profile.name]

    world.create_backend_of = create
    world.submit(backends=BOTH, trials=1)
    world.step()
    assert [trial.placement.backend for trial in world.trials("id0")] == ["lab"]


def test_profiles_of_one_name_with_other_options_are_two_backends():
    first = Profile("lab", "ssh", {"hosts": ["a"]})
    second = Profile("lab", "ssh", {"hosts": ["b"]})
    assert first.key != second.key
    assert first.key == Profile("lab", "ssh", {"hosts": ["a"]}).key
    assert Profile("local", "local").key == "local"
