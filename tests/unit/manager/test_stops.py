"""Budgets, stops and their receipts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.client.experiment_changes import StopReceipt
from jupyter_autotrain.core.backend import JobStatus
from jupyter_autotrain.core.spec import Budget
from jupyter_autotrain.manager import stops


def test_a_used_up_time_budget_ends_the_running_trials(world):
    experiment = world.submit(trials=5, budget=Budget(time_s=60))
    world.step()
    world.now += 61
    world.step()
    assert world.states(experiment) == ["CANCELLED"]
    assert world.store.experiment(experiment).reason == "the time budget of 60 s is used up"


def test_a_used_up_budget_of_failures_creates_no_more_trials(world):
    experiment = world.submit(trials=9, concurrency=2, budget=Budget(failures=2))
    for number in (1, 2):
        world.step()
        world.backend.job(number).end(TrialState.FAILED, "no")
    world.step()
    world.backend.job(3).end()
    world.step()
    assert world.states(experiment) == ["FAILED", "FAILED", "SUCCEEDED"]
    assert world.store.experiment(experiment).state is ExperimentState.SUCCEEDED


def test_a_stop_cancels_all_and_gives_a_receipt(world):
    experiment = world.submit(trials=5, concurrency=2)
    world.step()
    request = world.request("stop", experiment)
    world.step()
    answer = world.store.request(request)
    assert answer.done
    assert (answer.result["pids_ended"], answer.result["trials"]) == ([101, 102], [1, 2])
    assert world.states(experiment) == ["CANCELLED", "CANCELLED"]
    assert world.store.experiment(experiment).state is ExperimentState.CANCELLED


def test_a_stop_asked_for_before_a_kill_is_carried_out_after_it(world):
    experiment = world.submit(trials=2)
    world.step()
    request = world.request("stop", experiment)
    world.restart()
    world.step()
    assert world.store.request(request).done
    assert world.states(experiment) == ["CANCELLED"]


def test_a_cancel_that_fails_is_tried_until_the_backend_answers(world):
    experiment = world.submit()
    world.step()
    world.backend.down = "no route"
    request = world.request("stop", experiment)
    world.step()
    assert not world.store.request(request).done
    world.backend.down = ""
    world.step(40)
    assert world.store.request(request).result["pids_ended"] == [101]


def tell_of_processes(world, monkeypatch):
    """Let the backend tell, in its statuses, which processes of an ended trial it ended."""

    def poll(refs):
        told = {"receipt": {"ended": [7], "killed": [8], "left": []}}
        states = [world.backend.jobs[ref.job_id].state for ref in refs]
        return [
            JobStatus(ref, state, "", told if state.is_final else {}) for ref, state in zip(refs, states, strict=True)
        ]

    monkeypatch.setattr(world.backend, "poll", poll)


@pytest.mark.parametrize("is_noticed", [True, False])
def test_a_stop_carried_out_by_a_manager_that_died_is_answered_with_what_it_ended(world, monkeypatch, is_noticed):
    tell_of_processes(world, monkeypatch)
    experiment = world.submit()
    world.step()
    request = world.request("stop", experiment)
    world.manager._requests._answer = lambda request_id, result: None  # killed before it could
    if is_noticed:
        world.step()
        assert world.states(experiment) == ["CANCELLED"]
    else:
        world.backend.job(1).end(TrialState.CANCELLED)
    world.restart()
    world.step()
    result = world.store.request(request).result
    assert (result["pids_ended"], result["pids_killed"], result["pids_left"]) == ([7], [8], [])


def test_a_stop_whose_experiment_is_deleted_meanwhile_is_answered(world, monkeypatch):
    receipts_since = stops.receipts_since

    def after_its_deletion(context, record, *args):
        context.store.delete_experiment(record.id)
        return receipts_since(context, record, *args)

    experiment = world.submit()
    world.step()
    world.backend.job(1).end()
    world.step()
    monkeypatch.setattr(stops, "receipts_since", after_its_deletion)
    world.request("stop", experiment)
    with ThreadPoolExecutor(1) as threads:
        world.manager._requests._stops._threads = threads
        world.step()
    world.step(30)
    assert not world.manager._requests._stops


def test_a_stop_of_which_nobody_tells_the_processes_says_so():
    answer = {"pids_ended": [], "pids_killed": [], "pids_left": [], "elapsed_s": 1.0, "trials": [2], "unreported": [2]}
    assert "which processes of trial 2 ended is not known" in str(StopReceipt.of("exp", answer))
    assert "no process was running" in str(StopReceipt.of("exp", {**answer, "unreported": []}))


def test_a_stop_of_an_ended_experiment_has_an_empty_receipt_and_of_an_unknown_one_an_error(world):
    experiment = world.submit()
    world.step()
    world.backend.job(1).end()
    world.step()
    ended = world.request("stop", experiment)
    unknown = world.request("stop", "nothing")
    world.step()
    assert world.store.request(ended).result["trials"] == []
    assert "No experiment has the name" in world.store.request(unknown).result["error"]
