"""Tests of what the manager decides, with a simulated backend and clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Budget, Placement, Resources


def test_an_experiment_runs_all_its_trials_within_its_concurrency(world):
    experiment = world.submit(trials=3, concurrency=2)
    world.step()
    assert world.states(experiment) == ["RUNNING", "RUNNING"]
    world.backend.job(1).end()
    world.step()
    assert world.states(experiment) == ["SUCCEEDED", "RUNNING", "RUNNING"]
    world.backend.job(2).end()
    world.backend.job(3).end()
    world.step()
    assert world.store.experiment(experiment).state is ExperimentState.SUCCEEDED
    assert world.manager.is_idle


def test_metrics_are_in_the_store_before_the_trial_is_seen_to_end(world):
    experiment = world.submit(objective=Objective("acc"))
    world.step()
    job = world.backend.job(1)
    for step in range(20):
        job.report(step, acc=step / 10)
    job.end()
    world.step()
    assert [p.value for p in world.store.points(experiment)] == [step / 10 for step in range(20)]
    assert world.trials(experiment)[0].value == 1.9
    assert world.states(experiment) == ["SUCCEEDED"]


def test_a_line_half_written_waits_for_its_other_half(world):
    experiment = world.submit()
    world.step()
    job = world.backend.job(1)
    whole = b'["m", 1, 5.0, {"loss": 0.5}]\n'
    job.metrics += whole[:12]
    world.step()
    assert world.store.points(experiment) == []
    job.metrics += whole[12:]
    world.step()
    assert [p.value for p in world.store.points(experiment)] == [0.5]


def test_a_failed_trial_is_tried_again_from_its_checkpoints(world):
    experiment = world.submit(retries=1)
    world.step()
    world.backend.job(1).end(TrialState.FAILED, "ValueError: no")
    world.step()
    second = world.backend.job(1, attempt=2)
    assert second.trial.resume_attempt == 1
    second.end(TrialState.FAILED, "ValueError: again")
    world.step()
    (trial,) = world.trials(experiment)
    assert (trial.state, trial.attempt, trial.reason) == (TrialState.FAILED, 2, "ValueError: again")
    assert len(world.backend.jobs) == 2


def test_a_refusal_of_the_backend_is_the_trials_reason(world):
    experiment = world.submit()
    world.backend.refuses = "The queue is closed."
    world.step()
    (trial,) = world.trials(experiment)
    assert (trial.state, trial.reason) == (TrialState.FAILED, "The queue is closed.")


def test_a_backend_that_cannot_be_used_ends_the_experiment_with_its_reason(world):
    world.backend.unusable = "No Linux here."
    experiment = world.submit(trials=5)
    world.step()
    record = world.store.experiment(experiment)
    assert record.state is ExperimentState.FAILED
    assert "No Linux here." in record.reason
    assert "No Linux here." in world.trials(experiment)[0].reason


def test_a_wall_clock_that_jumps_uses_up_no_budget_and_stretches_no_duration(world):
    experiment = world.submit(budget=Budget(time_s=3600.0))
    world.step()
    assert world.states(experiment) == ["RUNNING"]
    begun_s = world.now
    world.jump_s = 30 * 86_400
    world.step()
    assert world.states(experiment) == ["RUNNING"]
    world.jump_s = -30 * 86_400
    world.step()
    world.restart()
    world.step()
    assert world.states(experiment) == ["RUNNING"]
    world.now += 100
    world.backend.job(1).end()
    world.step()
    (trial,) = world.trials(experiment)
    assert trial.state is TrialState.SUCCEEDED
    assert 100 < trial.ended_s - trial.started_s < 110
    record = world.store.experiment(experiment)
    assert world.now - begun_s <= record.ended_s - record.created_s < 110


def test_a_budget_of_time_is_used_up_by_the_clock_that_nobody_sets(world):
    experiment = world.submit(budget=Budget(time_s=60.0), concurrency=1)
    world.step()
    world.jump_s = -1e6
    world.now += 61
    world.step()
    assert world.states(experiment) == ["CANCELLED"]
    assert "time budget" in world.trials(experiment)[0].reason


def test_a_failing_store_delays_and_loses_nothing(world, monkeypatch):
    from jupyter_autotrain.errors import StoreError

    experiment = world.submit()
    world.step()
    ingest = world.store.ingest
    failures = [OSError(28, "full")] * 3

    def full_disk(rows):
        if failures:
            raise StoreError("The disk is full.") from failures.pop()
        return ingest(rows)

    monkeypatch.setattr(world.store, "ingest", full_disk)
    world.backend.job(1).report(acc=0.5)
    world.backend.job(1).end()
    world.step()
    assert world.pauses == [0.05, 0.1, 0.2]
    assert [p.value for p in world.store.points(experiment)] == [0.5]


def test_an_unreachable_backend_is_named_until_it_answers_again(world):

    experiment = world.submit()
    world.step()
    world.backend.down = "no route to host"
    world.step()
    assert "is on here, which does not answer since" in world.store.block_reasons(experiment)[1]
    world.backend.down = ""
    world.backend.job(1).end()
    world.step(15)
    assert world.states(experiment) == ["SUCCEEDED"]


def test_a_backend_that_cannot_be_made_ends_the_experiment(world):
    from jupyter_autotrain.errors import BackendError

    def refuse():
        raise BackendError("There is no backend 'mars'.")

    world.create_backend = refuse
    experiment = world.submit(backends=(BackendChoice(Profile("mars", "mars")),))
    world.step()
    assert world.store.experiment(experiment).state is ExperimentState.FAILED
    assert "There is no backend 'mars'" in world.store.experiment(experiment).reason


@pytest.mark.parametrize("seed", [None, 7])
def test_a_seed_is_shifted_by_the_trials_number(world, seed):
    world.submit(trials=2, concurrency=2, seed=seed)
    world.step()
    assert [world.backend.job(n).trial.seed for n in (1, 2)] == ([None, None] if seed is None else [7, 8])


def test_a_backend_that_queues_by_itself_gets_all_trials_at_once_and_chooses_their_nodes(world):
    world.backend.inventory = Inventory((Node("here", 1.0, 8_000_000_000),))
    asked = {"trials": 3, "concurrency": 3, "resources": Resources(cpus=1.0)}
    experiment = world.submit(**asked)
    world.step()
    assert world.states(experiment) == ["RUNNING", "WAITING", "WAITING"]
    assert [placed.node for placed in world.backend.job(1).placement.nodes] == ["here"]
    world.request("stop", experiment)
    world.step(10)
    world.backend.jobs.clear()
    world.backend.capabilities = replace(world.backend.capabilities, queues=True)
    world.restart()
    experiment = world.submit(**asked)
    world.step()
    assert world.states(experiment) == ["RUNNING"] * 3
    assert {job.placement for job in world.backend.jobs.values()} == {Placement(backend="local")}
