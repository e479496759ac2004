"""Changes of an experiment on request: more trials, resumed ones, clones."""

from __future__ import annotations

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.space import RandInt
from jupyter_autotrain.core.spec import STANDARD, Budget
from jupyter_autotrain.store import Store


class Numbering:
    """Gives each trial the number that it was asked for."""

    def __init__(self):
        self.told = {}

    def tell(self, trial):
        self.told[trial.number] = trial

    def ask(self, number):
        return {"x": number}


def end_all(world, experiment, state=TrialState.SUCCEEDED):
    for _ in range(20):
        running = [trial for trial in world.trials(experiment) if not trial.state.is_final]
        for trial in running:
            if trial.state is not TrialState.WAITING:
                world.backend.jobs[f"{experiment}-{trial.number}-{trial.attempt}"].end(state)
        world.step(1)
        if world.store.experiment(experiment).state.is_final:
            return
    raise AssertionError(world.states(experiment))


def test_more_trials_are_created_after_the_end_and_counted_from_then(world):
    experiment = world.submit(trials=2, budget=Budget(time_s=60))
    world.step()
    end_all(world, experiment)
    world.now += 3600
    request = world.request("update", experiment, trials=4, concurrency=2)
    world.step()
    assert world.store.request(request).result == {"trials": 4, "concurrency": 2}
    assert world.states(experiment) == ["SUCCEEDED"] * 2 + ["RUNNING"] * 2
    world.restart()
    world.step()
    assert world.states(experiment) == ["SUCCEEDED"] * 2 + ["RUNNING"] * 2
    end_all(world, experiment)
    record = world.store.experiment(experiment)
    assert (record.state, record.spec.trials, record.took_s(world.now) < 60) == ("SUCCEEDED", 4, True)


def test_what_is_asked_wrongly_changes_nothing(world):
    experiment = world.submit(trials=2)
    world.step()
    for asked in ({"trials": 0}, {"concurrency": True}, {"time_s": "long"}, {"colour": 1}):
        request = world.request("update", experiment, **asked)
        world.step()
        assert "Expected" in world.store.request(request).result["error"]
    assert world.store.experiment(experiment).spec.trials == 2


def test_a_budget_of_failures_that_is_raised_lets_the_search_go_on(world):
    experiment = world.submit(trials=3, budget=Budget(failures=1))
    world.step()
    end_all(world, experiment, TrialState.FAILED)
    assert world.states(experiment) == ["FAILED"]
    world.request("update", experiment, trials=3, failures=5)
    world.step()
    end_all(world, experiment)
    assert world.states(experiment) == ["FAILED", "SUCCEEDED", "SUCCEEDED"]


def test_a_resumed_experiment_goes_on_with_its_stopped_trials_and_creates_the_others(world):
    experiment = world.submit(trials=3)
    world.step()
    world.request("stop", experiment)
    world.step(8)
    assert world.store.experiment(experiment).state == "CANCELLED"
    request = world.request("resume", experiment)
    world.step()
    assert world.store.request(request).result == {"trials": [1], "left": 2}
    assert "resumed on request; attempt 1 was stopped" in world.trials(experiment)[0].reason
    end_all(world, experiment)
    assert world.states(experiment) == ["SUCCEEDED"] * 3
    again = world.request("resume", experiment)
    world.step()
    assert world.store.request(again).result == {"trials": [], "left": 0}


def test_clones_wait_for_a_slot_and_the_tuner_counts_its_own_trials_only(world):
    world.tuner = Numbering()
    experiment = world.submit(trials=4, search={"x": RandInt(0, 9)})
    world.step()
    request = world.request("continue", experiment, trials=[1], params={"x": 77})
    world.step()
    clone = world.trials(experiment)[1]
    assert world.store.request(request).result == {"trials": [2]}
    assert (clone.params, clone.state, clone.started_from) == ({"x": 77}, "WAITING", "trial 1")
    assert "its limit (`concurrency:`)" in world.store.block_reasons(experiment)[2]
    end_all(world, experiment)
    assert [trial.params["x"] for trial in world.trials(experiment)] == [1, 77, 2, 3, 4]
    assert sorted(world.tuner.told) == [1, 2, 3]
    assert world.backend.job(2).trial.source.job_id == f"{experiment}-1-1"


def test_clones_are_made_once_though_the_manager_is_killed_before_it_answers(world, monkeypatch):
    experiment = world.submit(trials=1, search={"x": RandInt(0, 9)})
    world.tuner = Numbering()
    world.step()
    end_all(world, experiment)
    request = world.request("continue", experiment, trials=[1], params={})
    with monkeypatch.context() as patched:
        patched.setattr(Store, "finish_request", lambda *_: None)
        world.step(1)
    world.restart()
    world.step()
    assert len(world.trials(experiment)) == 2
    assert world.store.request(request).result == {"trials": [2]}
    end_all(world, experiment)


def test_a_clone_of_nothing_or_with_an_unknown_parameter_is_refused(world):
    world.tuner = Numbering()
    experiment = world.submit(trials=1, search={"x": RandInt(0, 9)})
    world.step()
    for asked, says in (({"trials": [9]}, "no such trial"), ({"trials": [1], "params": {"y": 1}}, "y is not a param")):
        request = world.request("continue", experiment, **asked)
        world.step()
        assert says in world.store.request(request).result["error"]
    assert len(world.trials(experiment)) == 1


def test_an_experiment_that_is_being_stopped_is_not_changed(world):
    experiment = world.submit(trials=2)
    world.step()
    world.backend.silent = "no answer"
    world.request("stop", experiment)
    world.step(1)
    request = world.request("update", experiment, trials=5)
    world.step(1)
    assert "is being stopped" in world.store.request(request).result["error"]


def test_no_clone_is_made_of_a_session(world):
    experiment = world.submit(mode=STANDARD)
    world.step()
    request = world.request("continue", experiment, trials=[1], params={})
    world.step()
    assert "is a session" in world.store.request(request).result["error"]
    assert len(world.trials(experiment)) == 1
