"""Tests of what a trial that never reports its objective does to the others, and the hold that it puts on a search."""

from __future__ import annotations

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Resources


def test_an_objective_never_reported_fails_the_trial_with_what_was_reported(world):
    experiment = world.submit(objective=Objective("val_acc"))
    world.step()
    world.backend.job(1).report(loss=1.0, acc=0.5)
    world.backend.job(1).end()
    world.step()
    (trial,) = world.trials(experiment)
    assert trial.state is TrialState.FAILED
    assert "'val_acc' was never reported; it reported acc, loss" in trial.reason


def test_the_first_trial_that_ends_without_the_objective_holds_the_others_back(world):
    experiment = world.submit(trials=20, concurrency=2, retries=2, objective=Objective("val_acc"))
    world.step()
    world.backend.job(1).report(loss=1.0)
    world.backend.job(1).end()
    world.step()
    assert world.states(experiment) == ["FAILED", "RUNNING"]
    world.backend.job(2).end(TrialState.FAILED, "The objective 'val_acc' was never reported.", kind="objective")
    world.step(10)
    assert world.states(experiment) == ["FAILED", "FAILED"]
    record = world.store.experiment(experiment)
    assert record.state.is_final
    assert record.reason == (
        "trial 2 ended without reporting the objective 'val_acc', so 18 more trials did not begin: "
        "correct `objective:` or the reports"
    )


def test_trials_held_back_begin_when_a_running_one_reports_the_objective_after_all(world):
    experiment = world.submit(trials=3, concurrency=2, objective=Objective("val_acc"))
    world.step()
    world.backend.job(1).end()
    world.step(10)
    assert world.states(experiment) == ["FAILED", "RUNNING"]
    world.backend.job(2).report(val_acc=0.5)
    world.step(10)
    assert world.states(experiment) == ["FAILED", "RUNNING", "RUNNING"]
    world.backend.job(3).end()
    world.backend.job(2).end()
    world.step(10)
    assert world.states(experiment) == ["FAILED", "SUCCEEDED", "FAILED"]
    assert world.store.experiment(experiment).reason == ""


def test_trials_already_waiting_are_cancelled_with_the_reason_when_held_for_good(world):
    world.backend.inventory = Inventory((Node("here", 1.0, 8_000_000_000),))
    wish = Resources(cpus=1.0)
    experiment = world.submit(trials=3, concurrency=3, resources=wish, objective=Objective("val_acc"))
    world.step()
    assert world.states(experiment) == ["RUNNING", "WAITING", "WAITING"]
    world.backend.job(1).end()
    world.step(10)
    assert world.states(experiment) == ["FAILED", "CANCELLED", "CANCELLED"]
    assert "trial 1 ended without reporting" in world.trials(experiment)[2].reason


def test_an_exception_or_a_diverged_trial_holds_nothing_back(world):
    experiment = world.submit(trials=3, objective=Objective("val_acc"))
    world.step()
    world.backend.job(1).end(TrialState.FAILED, "ValueError: no", kind="exception")
    world.step(10)
    world.backend.job(2).end(TrialState.FAILED, "No value of the objective could be kept: it is inf.", kind="")
    world.step(10)
    assert world.states(experiment) == ["FAILED", "FAILED", "RUNNING"]


def test_a_retry_on_request_lets_held_trials_try_again(world):
    experiment = world.submit(trials=3, objective=Objective("val_acc"))
    world.step()
    world.backend.job(1).end()
    world.step(10)
    assert world.store.experiment(experiment).state.is_final
    world.request("retry", experiment)
    world.step(10)
    assert world.states(experiment) == ["RUNNING"]


def test_an_objective_reported_as_nan_counts_as_reported_also_after_a_restart(world):
    experiment = world.submit(objective=Objective("acc"))
    world.step()
    world.backend.job(1).report(acc=None)
    world.step()
    world.restart()
    world.backend.job(1).end()
    world.step()
    assert world.states(experiment) == ["SUCCEEDED"]
