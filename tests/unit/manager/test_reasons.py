"""Tests of what `why` says, driven through the whole manager."""

from __future__ import annotations

import json
import os

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.inventory import Accelerator, Inventory, Node
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.manager.contact import ManagerIdentity
from jupyter_autotrain.manager.reasons import explain
from jupyter_autotrain.manager.start import take_lock


@pytest.fixture
def lived_in(world):
    """Yield a world whose manager is this process."""
    lock = take_lock(world.home)
    ManagerIdentity.of(os.getpid()).write(lock)
    yield world
    os.close(lock)


def say(world, experiment):
    return explain(world.store, world.home, world.store.experiment(experiment))


def here(gpu):
    return Inventory((Node("here", 4.0, 8_000_000_000, (gpu,)),))


def test_a_waiting_trial_names_the_holder_in_another_experiment(lived_in):
    lived_in.backend.inventory = here(Accelerator(0, "GPU-a"))
    first = lived_in.submit("first", resources=Resources(gpus=1))
    second = lived_in.submit("second", resources=Resources(gpus=1))
    lived_in.step()
    assert say(lived_in, first) == []
    assert say(lived_in, second) == [
        "Trial 1 waits for 1 GPU, 0 free of 1: GPU 0 is held by trial 1 of first@1 (at most 1 per GPU); "
        "it is free when that ends."
    ]
    lived_in.backend.job(1).end()
    lived_in.step(20)
    assert lived_in.states(second) == ["RUNNING"]
    assert say(lived_in, second) == []


def test_a_gpu_freed_by_a_foreign_program_is_noticed(lived_in):
    lived_in.backend.inventory = here(Accelerator(0, "GPU-a", busy=True))
    experiment = lived_in.submit(resources=Resources(gpus=1))
    lived_in.step()
    assert "outside this manager" in say(lived_in, experiment)[0]
    lived_in.backend.inventory = here(Accelerator(0, "GPU-a"))
    lived_in.step(20)
    assert lived_in.states(experiment) == ["RUNNING"]


def test_what_can_never_run_fails_with_the_reason(lived_in):
    experiment = lived_in.submit(resources=Resources(cpus=64.0))
    lived_in.step()
    assert say(lived_in, experiment) == [
        "Trial 1 failed: asks for 64 CPUs; this backend has 4 CPUs: ask for less in `resources:`."
    ]


def test_trials_not_created_yet_name_who_takes_the_slots(lived_in):
    experiment = lived_in.submit(trials=5, concurrency=2)
    lived_in.step()
    assert say(lived_in, experiment) == [
        "3 of 5 trials are not created yet: the slots (`concurrency:`) are taken by trial 1, 2; "
        "each end frees a place for one."
    ]


def test_a_secret_lost_with_the_old_manager_is_named(lived_in):
    experiment = lived_in.submit(secrets=("HF_TOKEN",))
    lived_in.step()
    (sentence,) = say(lived_in, experiment)
    assert sentence.startswith("Trial 1 waits for its secret HF_TOKEN")
    lived_in.step(messages=[{"secrets": {experiment: {"HF_TOKEN": "x"}}}])
    assert say(lived_in, experiment) == []


def test_failed_trials_tell_their_cause(lived_in):
    experiment = lived_in.submit()
    lived_in.step()
    lived_in.backend.job(1).end(TrialState.FAILED, "ValueError: no (cell 3, line 7)")
    lived_in.step()
    assert say(lived_in, experiment) == ["Trial 1 failed: ValueError: no (cell 3, line 7)."]


def test_what_many_trials_fail_by_is_told_once(lived_in):
    experiment = lived_in.submit(trials=9, concurrency=9)
    lived_in.step()
    for number in range(1, 10):
        reason = "ValueError: no" if number == 4 else f"KeyError: 'x' (cell 3, line 7) after step {number}"
        lived_in.backend.job(number).end(TrialState.FAILED, reason)
    lived_in.step(20)
    assert say(lived_in, experiment)[:2] == [
        "Trial 1 failed: KeyError: 'x' (cell 3, line 7) after step 1. Likewise trials 2, 3, 5, 6, 7 and 2 more.",
        "Trial 4 failed: ValueError: no.",
    ]


def test_without_a_manager_nothing_is_said_to_be_about_to_start(world):
    experiment = world.submit()
    assert say(world, experiment) == [
        "The manager is not running. The next command that needs it starts it; nothing is lost."
    ]


def test_a_trial_that_was_killed_tells_the_step_of_its_last_report(lived_in):
    experiment = lived_in.submit()
    lived_in.step()
    lived_in.backend.job(1).report(step=40, loss=0.5)
    lived_in.backend.job(1).end(TrialState.FAILED, "Killed by signal 9 (SIGKILL).")
    lived_in.step(20)
    assert say(lived_in, experiment) == [
        "Trial 1 failed: Killed by signal 9 (SIGKILL); its last report was of step 40."
    ]


def test_refused_reports_are_told_once_with_their_number(lived_in):
    experiment = lived_in.submit()
    lived_in.step()
    job = lived_in.backend.job(1)
    for times in (1, 10, 12):
        job.metrics += json.dumps(["n", 1.0, "warning", "acc is 'x'", times]).encode() + b"\n"
    job.end()
    lived_in.step(20)
    assert say(lived_in, experiment) == ["12 warnings in trial 1; first: acc is 'x'."]
