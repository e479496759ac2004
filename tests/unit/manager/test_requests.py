"""Retries and the other requests of clients, and how durations are counted over them."""

from __future__ import annotations

import subprocess

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.spec import Budget


def test_a_retry_on_request_takes_an_ended_experiment_up_again(world):
    experiment = world.submit(trials=2, concurrency=2, budget=Budget(time_s=60))
    world.step()
    world.backend.job(1).end()
    world.request("stop", experiment)
    world.step()
    assert world.manager.is_idle
    world.now += 100
    request = world.request("retry", experiment)
    world.step()
    assert world.store.request(request).result == {"trials": [2]}
    world.backend.job(2, attempt=2).end()
    world.step()
    assert world.states(experiment) == ["SUCCEEDED", "SUCCEEDED"]


def test_how_long_it_took_is_counted_from_the_retry_of_what_had_ended(world):
    experiment = world.submit(trials=2, concurrency=2)
    world.step()
    world.backend.job(1).end()
    world.backend.job(2).end(TrialState.FAILED)
    world.step()
    assert world.store.experiment(experiment).took_s(world.now) < 5
    world.now += 86_400
    world.request("retry", experiment)
    world.step()
    assert world.store.experiment(experiment).took_s(world.now) < 5
    world.backend.job(2, attempt=2).end()
    world.step()
    record = world.store.experiment(experiment)
    again = world.trials(experiment)[1]
    assert record.took_s(world.now + 86_400) < 5
    assert (record.created_s, again.attempt) == (1000.0, 2)
    assert again.ended_s - again.started_s < 5


def test_a_retry_of_some_trials_while_others_run_counts_from_the_submission(world):
    experiment = world.submit(trials=2, concurrency=2)
    world.step()
    world.backend.job(2).end(TrialState.FAILED)
    world.step()
    world.now += 100
    world.request("retry", experiment)
    world.step()
    assert world.store.experiment(experiment).took_s(world.now) > 100


def test_a_concurrency_granted_is_kept_over_a_restart(world):
    experiment = world.submit(trials=9)
    world.step()
    good = world.request("update", experiment, concurrency=3)
    bad = world.request("update", experiment, concurrency=0)
    world.step()
    assert world.store.request(good).result == {"trials": 9, "concurrency": 3}
    assert "whole number" in world.store.request(bad).result["error"]
    assert world.states(experiment) == ["RUNNING"] * 3
    world.restart()
    world.step()
    world.backend.job(1).end()
    world.step()
    assert world.states(experiment) == ["SUCCEEDED"] + ["RUNNING"] * 3


def test_clean_deletes_an_ended_experiment_and_refuses_a_running_one(world):
    experiment = world.submit()
    world.home.bundle(experiment).mkdir(parents=True)
    world.step()
    refused = world.request("clean", experiment)
    world.step()
    assert "stop it first" in world.store.request(refused).result["error"]
    world.backend.job(1).end()
    world.step()
    done = world.request("clean", experiment)
    world.step()
    assert world.store.request(done).result["deleted"] is True
    assert not world.home.experiment(experiment).exists()


def test_a_request_of_an_unknown_kind_is_answered(world):
    request = world.request("dance", "id0")
    world.step()
    assert "no request of the kind 'dance'" in world.store.request(request).result["error"]


def test_secrets_reach_the_trial_and_nothing_else(world):
    experiment = world.submit(secrets=("TOKEN",))
    world.step()
    assert world.states(experiment) == ["WAITING"]
    world.step(messages=[{"secrets": {experiment: {"TOKEN": "s3cr3t", "OTHER": "x"}}}])
    assert world.backend.job(1).secrets == {"TOKEN": "s3cr3t"}
    # By another process: one that opens and closes the store's file gives up its own locks on it.
    found = subprocess.run(["grep", "-rlF", "s3cr3t", world.home.root], capture_output=True, check=False)
    assert found.stdout == b""
