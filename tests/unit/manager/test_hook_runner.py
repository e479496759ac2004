"""Hooks in the manager: told once an end is stored, again after a fault or a kill, never more often than bounded.

The tries at a receiver that refuses are real processes; only the manager's clock is the test's own.
"""

from __future__ import annotations

import sys
import time

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.hooks import Hook
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.manager.hooks import runner as hook_runner
from jupyter_autotrain.manager.reasons import explain
from jupyter_autotrain.testing import wait_until
from tests.journeys.hook_receiver import HookReceiver, delivery_states

WAIT_S = 60
HOOK = Hook("slack", "${URL}", events=("ended", "failed", "trial_failed"))


@pytest.fixture
def tries(monkeypatch):
    """Return what each try was given; `tries.faults` are what they give, then all is well."""

    class Tries(list):
        faults: list[str]

    made = Tries()
    made.faults = []

    def try_once(hook, payload, variables):
        made.append((hook.name, payload["event"], payload["id"], dict(variables)))
        return made.faults.pop(0) if made.faults else ""

    monkeypatch.setattr(hook_runner, "try_once", try_once)
    return made


def run_until(world, condition):
    """Step the manager until something has come of what its threads do."""
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        world.step(1)
        time.sleep(0.001)


def end(world, experiment_id, state=TrialState.SUCCEEDED):
    world.step()
    world.backend.job(1).end(state, "broken" if state is TrialState.FAILED else "")
    run_until(world, lambda: world.store.experiment(experiment_id).closed)


def states(world, experiment_id):
    return delivery_states(world.store, experiment_id)


def test_an_end_is_told_with_what_has_come_of_it(world, tries):
    experiment_id = world.submit(hooks=(HOOK,), trials=1, objective=Objective("v"))
    world.step()
    world.backend.job(1).report(v=0.5)
    end(world, experiment_id)
    run_until(world, lambda: not world.manager._hooks.is_busy)
    assert [event for _, event, _, _ in tries] == ["ended"]
    assert states(world, experiment_id) == [("slack", "delivered", 1)]
    assert explain(world.store, world.home, world.store.experiment(experiment_id)) == []


def test_a_failure_is_told_of_the_trial_and_of_the_experiment(world, tries):
    experiment_id = world.submit(hooks=(HOOK,), trials=1)
    end(world, experiment_id, TrialState.FAILED)
    run_until(world, lambda: not world.manager._hooks.is_busy)
    assert sorted(event for _, event, _, _ in tries) == ["ended", "failed", "trial_failed"]


def test_a_message_survives_the_manager_and_is_told_with_the_same_id(world, tries):
    tries.faults = ["it is down"]
    experiment_id = world.submit(hooks=(HOOK,), trials=1)
    end(world, experiment_id)
    run_until(world, lambda: states(world, experiment_id) == [("slack", "pending", 1)])
    world.restart()
    run_until(world, lambda: states(world, experiment_id) == [("slack", "delivered", 2)])
    assert len({delivery_id for _, _, delivery_id, _ in tries}) == 1
    run_until(world, lambda: world.manager.is_idle)


def test_tries_are_spaced_bounded_and_then_a_warning(world, tries):
    tries.faults = ["HTTP status 500"] * 50
    experiment_id = world.submit(hooks=(HOOK,), trials=1)
    end(world, experiment_id)
    begun_s = world.now
    run_until(world, lambda: world.manager.is_idle)
    assert states(world, experiment_id) == [("slack", "given up", 6)]
    assert len(tries) == 6
    assert world.now - begun_s >= 2 + 4 + 8 + 16 + 32
    (reason,) = explain(world.store, world.home, world.store.experiment(experiment_id))
    assert reason == "The hook slack was not reached in 6 tries: HTTP status 500."


def test_values_are_known_until_the_hook_has_been_told_and_are_not_stored(world, tries):
    experiment_id = world.submit(hooks=(HOOK,), trials=1)
    world.step(1, messages=[{"secrets": {experiment_id: {"URL": "https://secret.example"}}}])
    tries.faults = ["it is down"]
    end(world, experiment_id)
    run_until(world, lambda: world.manager.is_idle)
    assert [variables for _, _, _, variables in tries] == [{"URL": "https://secret.example"}] * 2
    assert world.manager._secrets.of(experiment_id) == {}
    assert b"secret.example" not in world.home.store.read_bytes()


def test_a_deleted_experiment_has_no_messages(world, tries):
    tries.faults = ["it is down"] * 50
    experiment_id = world.submit(hooks=(HOOK,), trials=1)
    end(world, experiment_id)
    run_until(world, lambda: len(tries) == 1)
    world.store.delete_experiment(experiment_id)
    run_until(world, lambda: world.manager.is_idle)
    assert len(tries) <= 2


def test_an_experiment_that_ends_again_is_told_again(world, tries):
    experiment_id = world.submit(hooks=(HOOK,), trials=1)
    end(world, experiment_id, TrialState.FAILED)
    run_until(world, lambda: world.manager.is_idle)
    before = len(tries)
    world.request("retry", experiment_id, trials=[1])
    run_until(world, lambda: len(world.backend.jobs) == 2)
    world.backend.job(1, attempt=2).end()
    run_until(world, lambda: len(tries) > before and world.manager.is_idle)
    assert [event for _, event, _, _ in tries[before:]] == ["ended"]


TRIES_WITHIN_S = 300  # for six processes on a busy machine
SLOW_S = 60.0
PAUSE_S = 32.0  # the longest pause between two tries
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
        world.now += PAUSE_S
        world.step(1)
        return world.store.experiment(experiment_id).closed and world.manager.is_idle

    wait_until(has_nothing_to_tell, "the last try", within_s=TRIES_WITHIN_S)
    return experiment_id


def test_a_receiver_that_refuses_five_times_is_told_by_the_sixth_try(world, receiver):
    receiver.refusals = 5
    receiver.open()
    experiment_id = run_to_the_end(world, Hook("web", receiver.url, timeout_s=SLOW_S))
    assert delivery_states(world.store, experiment_id) == [("web", "delivered", 6)]
    assert len(receiver.received) == 6
    assert len({message["id"] for message in receiver.received}) == 1
    assert explain(world.store, world.home, world.store.experiment(experiment_id)) == []


def test_a_command_that_always_fails_is_run_six_times_and_then_a_warning(world, tmp_path):
    kept = tmp_path / "kept"
    command = (sys.executable, "-c", REFUSES, str(kept))
    experiment_id = run_to_the_end(world, Hook("bell", command=command, timeout_s=SLOW_S))
    assert delivery_states(world.store, experiment_id) == [("bell", "given up", 6)]
    assert kept.read_text().splitlines() == ["told"] * 6
    (reason,) = explain(world.store, world.home, world.store.experiment(experiment_id))
    assert reason.startswith("The hook bell was not reached in 6 tries:")
    assert "3" in reason
