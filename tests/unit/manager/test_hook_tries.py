"""All tries of a hook, by its processes, at a receiver that refuses; only the manager's clock is the test's own."""

from __future__ import annotations

import sys

import pytest

from jupyter_autotrain.core.hooks import Hook
from jupyter_autotrain.manager.explain import explain
from jupyter_autotrain.testing import wait_until
from tests.journeys.hook_receiver import HookReceiver

WAIT_S = 300  # for six processes on a busy machine
SLOW_S = 60.0
REFUSES = "import pathlib, sys; pathlib.Path(sys.argv[1]).open('a').write('told\\n'); sys.exit(3)"


@pytest.fixture
def receiver():
    made = HookReceiver()
    yield made
    made.close()


def run_to_the_end(world, hook):
    """Submit, end, and step the manager until it has nothing to tell any more; gives the experiment's id."""
    experiment_id = world.submit(hooks=(hook,), trials=1)
    world.step()
    world.backend.job(1).end()

    def has_nothing_to_tell():
        world.step(1)
        return world.store.experiment(experiment_id).closed and world.manager.is_idle

    wait_until(has_nothing_to_tell, "the last try", within_s=WAIT_S)
    return experiment_id


def test_a_receiver_that_refuses_five_times_is_told_by_the_sixth_try(world, receiver):
    receiver.refusals = 5
    receiver.open()
    experiment_id = run_to_the_end(world, Hook("web", receiver.url, timeout_s=SLOW_S))
    assert world.store.delivery_states(experiment_id) == [("web", "delivered", 6)]
    assert len(receiver.received) == 6
    assert len({message["id"] for message in receiver.received}) == 1
    assert explain(world.store, world.home, world.store.experiment(experiment_id)) == []


def test_a_command_that_always_fails_is_run_six_times_and_then_a_warning(world, tmp_path):
    kept = tmp_path / "kept"
    command = (sys.executable, "-c", REFUSES, str(kept))
    experiment_id = run_to_the_end(world, Hook("bell", command=command, timeout_s=SLOW_S))
    assert world.store.delivery_states(experiment_id) == [("bell", "given up", 6)]
    assert kept.read_text().splitlines() == ["told"] * 6
    (reason,) = explain(world.store, world.home, world.store.experiment(experiment_id))
    assert reason.startswith("The hook bell was not told after 6 tries:")
    assert "3" in reason
