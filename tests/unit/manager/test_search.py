"""Tuners and early stopping, as the manager drives them."""

from __future__ import annotations

import pytest

from jupyter_autotrain.agent.states import ExperimentState
from jupyter_autotrain.core.objective import Constraint, Direction, Objective, Summary
from jupyter_autotrain.core.space import RandInt
from jupyter_autotrain.core.tuner import StopReason


class Broken:
    def ask(self, number):
        raise RuntimeError("no idea")


class Counting:
    def __init__(self):
        self.known = {}
        self.seen = []

    def tell(self, trial):
        self.known[trial.number] = (trial.number, trial.state.value, trial.value)

    def ask(self, number):
        self.seen.append([*self.known.values()])
        return {"x": number} if number <= 2 else None


def test_a_broken_tuner_fails_its_own_experiment_only(world):
    world.tuner = Broken()
    bad = world.submit("bad", search={"x": RandInt(0, 9)})
    good = world.submit("good")
    world.step()
    assert world.states(bad) == ["FAILED"]
    assert "the tuner 'tpe' failed: RuntimeError: no idea" in world.trials(bad)[0].reason
    assert world.states(good) == ["RUNNING"]


def test_a_tuner_sees_all_that_happened_and_may_run_out(world):
    world.tuner = Counting()
    experiment = world.submit(search={"x": RandInt(0, 9)}, trials=9, objective=Objective("acc"))
    for number in (1, 2):
        world.step()
        world.backend.job(number).report(acc=0.1 * number)
        world.backend.job(number).end()
    world.step()
    assert world.tuner.seen[-1] == [(1, "SUCCEEDED", 0.1), (2, "SUCCEEDED", 0.2)]
    record = world.store.experiment(experiment)
    assert record.state is ExperimentState.SUCCEEDED
    assert record.reason == "the search space is used up after 2 trials"


class Scripted:
    def __init__(self, *answers):
        self.answers = answers
        self.told = []

    def tell(self, trial):
        self.told.append(trial)

    def ask(self, number):
        return self.answers[number - 1]


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ({"x": 10}, "it gave x = 10, which the search space does not have"),
        ({}, "it gave no value of 'x'"),
        ({"x": 1, "y": 2}, "it gave 'y', which is not in the search space"),
        ({"x": float("nan")}, "Out of range float values are not JSON compliant"),
        ({"x": object()}, "Object of type object is not JSON serializable"),
        (["x"], "it gave ['x'] instead of a mapping of parameters"),
    ],
)
def test_a_tuner_that_asks_for_nonsense_ends_its_experiment_which_keeps_its_trials(world, answer, what):
    world.tuner = Scripted({"x": 3}, answer)
    experiment = world.submit(search={"x": RandInt(0, 9)}, trials=5, concurrency=2)
    world.step()
    world.backend.job(1).end()
    world.step()
    assert world.states(experiment) == ["SUCCEEDED", "FAILED"]
    reason = world.store.experiment(experiment).reason
    assert reason.startswith("the tuner 'tpe' failed: ")
    assert what in reason


def test_a_tuner_is_told_further_objectives_and_how_far_constraints_are_broken(world):
    world.tuner = Scripted({"x": 1}, {"x": 2})
    world.submit(
        search={"x": RandInt(0, 9)}, trials=2, objective=Objective("acc"),
        more_objectives=(Objective("ms", Direction.MINIMIZE, Summary.MIN), Objective("never")),
        constraints=(Constraint("mb", 100.0), Constraint("acc", 0.5, is_upper=False)),
    )  # fmt: skip
    world.step()
    for ms in (9.0, 7.0, 8.0):
        world.backend.job(1).report(acc=0.25, ms=ms, mb=130.0)
    world.backend.job(1).end()
    world.step()
    told = next(trial for trial in world.tuner.told if trial.state.is_final)
    assert (told.value, told.more_values, told.values) == (0.25, (7.0, None), None)
    assert told.violations == {"mb <= 100": 30.0, "acc >= 0.5": 0.25}


def test_a_restarted_manager_tells_its_tuner_all_trials_in_order(world):
    world.tuner = Scripted({"x": 1}, {"x": 2}, {"x": 3})
    world.submit(search={"x": RandInt(0, 9)}, trials=3, concurrency=2, objective=Objective("acc"))
    world.step()
    world.backend.job(2).report(acc=0.5)
    world.tuner = Scripted({"x": 1}, {"x": 2}, {"x": 3})
    world.restart()
    world.step()
    world.backend.job(2).end()
    world.step()
    assert [(trial.number, trial.state.value, trial.value) for trial in world.tuner.told[:2]] == [
        (1, "RUNNING", None), (2, "SUCCEEDED", 0.5),
    ]  # fmt: skip


def test_no_tuner_is_asked_where_nothing_is_searched(world):
    world.tuner = Broken()
    experiment = world.submit()
    world.step()
    assert world.states(experiment) == ["RUNNING"]


class LaterIsWorse:
    def reason_to_stop(self, number, curve, others):
        best = max((other[-1][1] for other in others.values()), default=0.0)
        return StopReason(*curve[-1], f"best of {len(others)} is {best}") if curve[-1][1] < best else None


def test_an_early_stop_is_soft_and_survives_a_restart(world):
    world.early_stop = LaterIsWorse()
    experiment = world.submit(trials=2, concurrency=2, objective=Objective("acc"), early_stop="median")
    world.step()
    world.backend.job(1).report(acc=0.9)
    world.step()
    world.backend.job(2).report(acc=0.1)
    world.step()
    assert "control/stop" in world.backend.job(2).files
    assert world.states(experiment) == ["RUNNING", "RUNNING"]
    world.restart()
    world.step()
    world.backend.job(2).end()
    world.step()
    assert world.states(experiment) == ["RUNNING", "EARLY_STOPPED"]
    assert world.trials(experiment)[1].reason == "stopped early at step 1: 0.1; best of 1 is 0.9"


def test_early_stopping_judges_by_the_rule_of_the_objective_also_after_a_restart(world):
    world.early_stop = LaterIsWorse()
    objective = Objective("acc", summary=Summary.MAX)
    experiment = world.submit(trials=2, concurrency=2, objective=objective, early_stop="median")
    world.step()
    world.backend.job(1).report(step=1, acc=0.5)
    world.backend.job(2).report(step=1, acc=0.9)
    world.step()
    world.restart()
    world.step()
    world.backend.job(2).report(step=2, acc=0.1)
    world.step()
    assert world.backend.job(2).files == {}
    world.backend.job(1).report(step=2, acc=0.6)
    world.step()
    assert world.backend.job(1).files["control/stop"].decode().endswith("at step 2: 0.6; best of 1 is 0.9")
    assert [trial.value for trial in world.trials(experiment)] == [0.6, 0.9]


def test_a_trial_deaf_to_its_early_stop_is_cancelled(world):
    world.early_stop = LaterIsWorse()
    experiment = world.submit(trials=2, concurrency=2, objective=Objective("acc"), early_stop="median")
    world.step()
    world.backend.job(1).report(acc=0.9)
    world.step()
    world.backend.job(2).report(acc=0.1)
    world.step()
    world.now += 1
    world.step()
    assert world.states(experiment) == ["RUNNING", "EARLY_STOPPED"]
    assert world.backend.cancelled == [f"{experiment}-2-1"]
