"""Tests that a manager's decisions are carried out by the next one: they are rows of the store."""

from __future__ import annotations

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.inventory import Accelerator, Inventory, Node
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.space import RandInt
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.core.tuner import StopReason
from jupyter_autotrain.manager.reasons import explain


class KilledError(BaseException):
    """The manager ends here, as by kill -9."""


class StopsTheWorst:
    def reason_to_stop(self, number, curve, others):
        best = max((other[-1][1] for other in others.values()), default=0.0)
        return StopReason(*curve[-1], f"the best is {best}") if curve[-1][1] < best else None


def early_stop_decided(world, monkeypatch):
    """Kill the manager after it has decided to stop trial 2 and before the backend hears of it."""
    world.early_stop = StopsTheWorst()
    experiment = world.submit(trials=2, concurrency=2, objective=Objective("acc"), early_stop="median")
    world.step()
    world.backend.job(1).report(acc=0.9)
    world.step()
    world.backend.job(2).report(acc=0.1)

    def kill(ref, path, data):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(world.backend, "put", kill)
        with pytest.raises(KilledError):
            world.step()
    assert world.backend.job(2).files == {}
    world.restart()
    return experiment


def test_an_early_stop_decided_before_a_kill_is_asked_for_after_it(world, monkeypatch):
    experiment = early_stop_decided(world, monkeypatch)
    world.step()
    assert world.backend.job(2).files["control/stop"] == b"stopped early at step 1: 0.1; the best is 0.9"
    world.backend.job(2).end(TrialState.EARLY_STOPPED)
    world.step()
    assert world.states(experiment) == ["RUNNING", "EARLY_STOPPED"]


def test_a_trial_that_is_through_before_its_early_stop_reaches_it_is_not_called_stopped(world, monkeypatch):
    experiment = early_stop_decided(world, monkeypatch)
    world.backend.job(2).end()
    world.step()
    assert world.states(experiment) == ["RUNNING", "SUCCEEDED"]
    assert world.trials(experiment)[1].reason == ""


def test_trials_blocked_for_a_missing_objective_stay_blocked_after_a_kill(world):
    experiment = world.submit(trials=3, concurrency=2, objective=Objective("val_acc"))
    world.step()
    world.backend.job(1).report(loss=1.0)
    world.backend.job(1).end()
    world.step()
    world.restart()
    world.step(10)
    assert world.states(experiment) == ["FAILED", "RUNNING"]
    world.backend.job(2).report(val_acc=0.5)
    world.step()
    assert world.states(experiment) == ["FAILED", "RUNNING", "RUNNING"]
    world.restart()
    world.step()
    assert world.states(experiment) == ["FAILED", "RUNNING", "RUNNING"]


class FailsOnTheSecond:
    def tell(self, trial):
        pass

    def ask(self, number):
        if number > 1:
            raise RuntimeError("no idea")
        return {"x": 1}


def test_an_experiment_that_creates_no_more_trials_creates_none_after_a_kill(world):
    world.tuner = FailsOnTheSecond()
    experiment = world.submit(search={"x": RandInt(0, 9)}, trials=9, concurrency=2)
    world.step()
    assert world.states(experiment) == ["RUNNING", "FAILED"]
    world.restart()
    world.step()
    assert world.states(experiment) == ["RUNNING", "FAILED"]
    world.backend.job(1).end()
    world.step()
    assert "the tuner 'tpe' failed: RuntimeError: no idea" in world.store.experiment(experiment).reason


def test_why_tells_the_last_reason_of_a_manager_that_was_killed(world):
    world.backend.inventory = Inventory((Node("here", 4.0, 8_000_000_000, (Accelerator(0, "GPU-a"),)),))
    world.submit("first", resources=Resources(gpus=1))
    second = world.submit("second", resources=Resources(gpus=1))
    world.step()
    assert explain(world.store, world.home, world.store.experiment(second)) == [
        "Trial 1 waits for 1 GPU, 0 free of 1: GPU 0 is held by trial 1 of first@1 (at most 1 per GPU); "
        "it is free when that ends.",
        "The manager is not running. The next command that needs it starts it; nothing is lost.",
    ]


def test_reasons_of_a_killed_manager_go_when_they_hold_no_longer(world):
    experiment = world.submit()
    world.step()
    world.backend.down = "no route to host"
    world.step()
    assert world.store.block_reasons(experiment)
    world.restart()
    world.backend.down = ""
    world.step()
    assert world.store.block_reasons(experiment) == {}


def test_reasons_are_written_only_when_they_change(world, monkeypatch):
    written = []
    keep = world.store.set_block_reasons
    monkeypatch.setattr(world.store, "set_block_reasons", lambda *args: (written.append(args), keep(*args)))
    world.backend.inventory = Inventory((Node("here", 1.0, 8_000_000_000),))
    world.submit(trials=2, concurrency=2, resources=Resources(cpus=1.0))
    world.step(20)
    assert len(written) <= 2
    before = world.store.data_version()
    world.step(20)
    assert world.store.data_version() == before


def test_a_retry_of_what_was_stopped_while_trials_were_blocked_begins_anew(world):
    experiment = world.submit(trials=3, concurrency=2, objective=Objective("val_acc"))
    world.step()
    world.backend.job(1).end()
    world.step()
    world.request("stop", experiment)
    world.step(10)
    assert world.states(experiment) == ["FAILED", "CANCELLED"]
    world.request("retry", experiment)
    world.step()
    assert world.states(experiment) == ["RUNNING", "RUNNING"]
