"""What the manager decides, with a simulated place and clock."""

from __future__ import annotations

import subprocess

import pytest

from jupyter_autotrain.client.receipt import Receipt
from jupyter_autotrain.core.backend import JobStatus
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.objective import Objective, Summary
from jupyter_autotrain.core.space import RandInt
from jupyter_autotrain.core.spec import Budget, Resources
from jupyter_autotrain.core.states import ExperimentState, TrialState
from jupyter_autotrain.core.tuner import StopReason


def test_an_experiment_runs_all_its_trials_within_its_concurrency(world):
    experiment = world.submit(trials=3, concurrency=2)
    world.step()
    assert world.states(experiment) == ["RUNNING", "RUNNING"]
    world.place.job(1).end()
    world.step()
    assert world.states(experiment) == ["SUCCEEDED", "RUNNING", "RUNNING"]
    world.place.job(2).end()
    world.place.job(3).end()
    world.step()
    assert world.store.experiment(experiment).state is ExperimentState.SUCCEEDED
    assert world.manager.is_idle


def test_metrics_are_in_the_store_before_the_trial_is_seen_to_end(world):
    experiment = world.submit(objective=Objective("acc"))
    world.step()
    job = world.place.job(1)
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
    job = world.place.job(1)
    whole = b'["m", 1, 5.0, {"loss": 0.5}]\n'
    job.metrics += whole[:12]
    world.step()
    assert world.store.points(experiment) == []
    job.metrics += whole[12:]
    world.step()
    assert [p.value for p in world.store.points(experiment)] == [0.5]


def test_an_objective_never_reported_fails_the_trial_with_what_was_reported(world):
    experiment = world.submit(objective=Objective("val_acc"))
    world.step()
    world.place.job(1).report(loss=1.0, acc=0.5)
    world.place.job(1).end()
    world.step()
    (trial,) = world.trials(experiment)
    assert trial.state is TrialState.FAILED
    assert "'val_acc' was never reported; it reported acc, loss" in trial.reason


def test_the_first_trial_that_ends_without_the_objective_holds_the_others_back(world):
    experiment = world.submit(trials=20, concurrency=2, retries=2, objective=Objective("val_acc"))
    world.step()
    world.place.job(1).report(loss=1.0)
    world.place.job(1).end()
    world.step()
    assert world.states(experiment) == ["FAILED", "RUNNING"]
    world.place.job(2).end(TrialState.FAILED, "The objective 'val_acc' was never reported.", kind="objective")
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
    world.place.job(1).end()
    world.step(10)
    assert world.states(experiment) == ["FAILED", "RUNNING"]
    world.place.job(2).report(val_acc=0.5)
    world.step(10)
    assert world.states(experiment) == ["FAILED", "RUNNING", "RUNNING"]
    world.place.job(3).end()
    world.place.job(2).end()
    world.step(10)
    assert world.states(experiment) == ["FAILED", "SUCCEEDED", "FAILED"]
    assert world.store.experiment(experiment).reason == ""


def test_trials_already_waiting_are_cancelled_with_the_reason_when_held_for_good(world):
    world.place.inventory = Inventory(cpus=1.0, memory_bytes=8_000_000_000)
    wish = Resources(cpus=1.0)
    experiment = world.submit(trials=3, concurrency=3, resources=wish, objective=Objective("val_acc"))
    world.step()
    assert world.states(experiment) == ["RUNNING", "WAITING", "WAITING"]
    world.place.job(1).end()
    world.step(10)
    assert world.states(experiment) == ["FAILED", "CANCELLED", "CANCELLED"]
    assert "trial 1 ended without reporting" in world.trials(experiment)[2].reason


def test_an_exception_or_a_diverged_trial_holds_nothing_back(world):
    experiment = world.submit(trials=3, objective=Objective("val_acc"))
    world.step()
    world.place.job(1).end(TrialState.FAILED, "ValueError: no", kind="exception")
    world.step(10)
    world.place.job(2).end(TrialState.FAILED, "No value of the objective could be kept: it is inf.", kind="")
    world.step(10)
    assert world.states(experiment) == ["FAILED", "FAILED", "RUNNING"]


def test_a_retry_on_request_lets_held_trials_try_again(world):
    experiment = world.submit(trials=3, objective=Objective("val_acc"))
    world.step()
    world.place.job(1).end()
    world.step(10)
    assert world.store.experiment(experiment).state.is_final
    world.request("retry", experiment)
    world.step(10)
    assert world.states(experiment) == ["RUNNING"]


def test_an_objective_reported_as_nan_counts_as_reported_also_after_a_restart(world):
    experiment = world.submit(objective=Objective("acc"))
    world.step()
    world.place.job(1).report(acc=None)
    world.step()
    world.restart()
    world.place.job(1).end()
    world.step()
    assert world.states(experiment) == ["SUCCEEDED"]


def test_a_failed_trial_is_tried_again_from_its_checkpoints(world):
    experiment = world.submit(retries=1)
    world.step()
    world.place.job(1).end(TrialState.FAILED, "ValueError: no")
    world.step()
    second = world.place.job(1, attempt=2)
    assert second.trial.resume_from == str(world.home.trial(experiment, 1, 1) / "checkpoints")
    second.end(TrialState.FAILED, "ValueError: again")
    world.step()
    (trial,) = world.trials(experiment)
    assert (trial.state, trial.attempt, trial.reason) == (TrialState.FAILED, 2, "ValueError: again")
    assert len(world.place.jobs) == 2


def test_a_refusal_of_the_place_is_the_trials_reason(world):
    experiment = world.submit()
    world.place.refuses = "The queue is closed."
    world.step()
    (trial,) = world.trials(experiment)
    assert (trial.state, trial.reason) == (TrialState.FAILED, "The queue is closed.")


def test_a_place_that_cannot_be_used_ends_the_experiment_with_its_reason(world):
    world.place.unusable = "No Linux here."
    experiment = world.submit(trials=5)
    world.step()
    record = world.store.experiment(experiment)
    assert record.state is ExperimentState.FAILED
    assert "No Linux here." in record.reason
    assert "No Linux here." in world.trials(experiment)[0].reason


class Broken:
    def suggest(self, number, history):
        raise RuntimeError("no idea")


class Counting:
    def __init__(self):
        self.seen = []

    def suggest(self, number, history):
        self.seen.append([(o.number, o.state.value, o.value) for o in history])
        return {"x": number} if number <= 2 else None


def test_a_broken_tuner_fails_its_own_experiment_only(world):
    world.tuner = Broken()
    bad, good = world.submit("bad", search={"x": RandInt(0, 9)}), world.submit("good")
    world.step()
    assert world.states(bad) == ["FAILED"]
    assert "the tuner 'tpe' failed: RuntimeError: no idea" in world.trials(bad)[0].reason
    assert world.states(good) == ["RUNNING"]


def test_a_tuner_sees_all_that_happened_and_may_run_out(world):
    world.tuner = Counting()
    experiment = world.submit(search={"x": RandInt(0, 9)}, trials=9, objective=Objective("acc"))
    for number in (1, 2):
        world.step()
        world.place.job(number).report(acc=0.1 * number)
        world.place.job(number).end()
    world.step()
    assert world.tuner.seen[-1] == [(1, "SUCCEEDED", 0.1), (2, "SUCCEEDED", 0.2)]
    record = world.store.experiment(experiment)
    assert record.state is ExperimentState.SUCCEEDED
    assert record.reason == "the search space is used up after 2 trials"


def test_no_tuner_is_asked_where_nothing_is_searched(world):
    world.tuner = Broken()
    experiment = world.submit()
    world.step()
    assert world.states(experiment) == ["RUNNING"]


class LaterIsWorse:
    def reason_to_stop(self, curve, others):
        best = max((other[-1][1] for other in others), default=0.0)
        return StopReason(*curve[-1], f"best of {len(others)} is {best}") if curve[-1][1] < best else None


def test_an_early_stop_is_soft_and_survives_a_restart(world):
    world.early_stop = LaterIsWorse()
    experiment = world.submit(trials=2, concurrency=2, objective=Objective("acc"), early_stop="median")
    world.step()
    world.place.job(1).report(acc=0.9)
    world.step()
    world.place.job(2).report(acc=0.1)
    world.step()
    assert "control/stop" in world.place.job(2).files
    assert world.states(experiment) == ["RUNNING", "RUNNING"]
    world.restart()
    world.step()
    world.place.job(2).end()
    world.step()
    assert world.states(experiment) == ["RUNNING", "EARLY_STOPPED"]
    assert world.trials(experiment)[1].reason == "stopped early at step 1: 0.1; best of 1 is 0.9"


def test_early_stopping_judges_by_the_rule_of_the_objective_also_after_a_restart(world):
    world.early_stop = LaterIsWorse()
    objective = Objective("acc", summary=Summary.MAX)
    experiment = world.submit(trials=2, concurrency=2, objective=objective, early_stop="median")
    world.step()
    world.place.job(1).report(step=1, acc=0.5)
    world.place.job(2).report(step=1, acc=0.9)
    world.step()
    world.restart()
    world.step()
    world.place.job(2).report(step=2, acc=0.1)
    world.step()
    assert world.place.job(2).files == {}
    world.place.job(1).report(step=2, acc=0.6)
    world.step()
    assert world.place.job(1).files["control/stop"].decode().endswith("at step 2: 0.6; best of 1 is 0.9")
    assert [trial.value for trial in world.trials(experiment)] == [0.6, 0.9]


def test_a_trial_deaf_to_its_early_stop_is_cancelled(world):
    world.early_stop = LaterIsWorse()
    experiment = world.submit(trials=2, concurrency=2, objective=Objective("acc"), early_stop="median")
    world.step()
    world.place.job(1).report(acc=0.9)
    world.step()
    world.place.job(2).report(acc=0.1)
    world.step()
    world.now += 31
    world.step()
    assert world.states(experiment) == ["RUNNING", "EARLY_STOPPED"]
    assert world.place.cancelled == [f"{experiment}-2-1"]


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
        world.place.job(number).end(TrialState.FAILED, "no")
    world.step()
    world.place.job(3).end()
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


def test_a_cancel_that_fails_is_tried_until_the_place_answers(world):
    experiment = world.submit()
    world.step()
    world.place.down = "no route"
    request = world.request("stop", experiment)
    world.step()
    assert not world.store.request(request).done
    world.place.down = ""
    world.step(40)
    assert world.store.request(request).result["pids_ended"] == [101]


def tell_of_processes(world, monkeypatch):
    """Let the place tell, in its statuses, which processes of an ended trial it ended."""

    def poll(refs):
        told = {"receipt": {"ended": [7], "killed": [8], "left": []}}
        states = [world.place.jobs[ref.job_id].state for ref in refs]
        return [
            JobStatus(ref, state, "", told if state.is_final else {}) for ref, state in zip(refs, states, strict=True)
        ]

    monkeypatch.setattr(world.place, "poll", poll)


@pytest.mark.parametrize("is_noticed", [True, False])
def test_a_stop_carried_out_by_a_manager_that_died_is_answered_with_what_it_ended(world, monkeypatch, is_noticed):
    tell_of_processes(world, monkeypatch)
    experiment = world.submit()
    world.step()
    request = world.request("stop", experiment)
    world.manager._desk._answer = lambda request_id, result: None  # killed before it could
    if is_noticed:
        world.step()
        assert world.states(experiment) == ["CANCELLED"]
    else:
        world.place.job(1).end(TrialState.CANCELLED)
    world.restart()
    world.step()
    result = world.store.request(request).result
    assert (result["pids_ended"], result["pids_killed"], result["pids_left"]) == ([7], [8], [])


def test_a_stop_of_which_nobody_tells_the_processes_says_so():
    answer = {"pids_ended": [], "pids_killed": [], "pids_left": [], "elapsed_s": 1.0, "trials": [2], "silent": [2]}
    assert "which processes of trial 2 ended is not known" in str(Receipt.of("exp", answer))
    assert "no process was running" in str(Receipt.of("exp", {**answer, "silent": []}))


def test_a_stop_of_an_ended_experiment_has_an_empty_receipt_and_of_an_unknown_one_an_error(world):
    experiment = world.submit()
    world.step()
    world.place.job(1).end()
    world.step()
    ended, unknown = world.request("stop", experiment), world.request("stop", "nothing")
    world.step()
    assert world.store.request(ended).result["trials"] == []
    assert "No experiment answers" in world.store.request(unknown).result["error"]


def test_a_retry_on_request_takes_an_ended_experiment_up_again(world):
    experiment = world.submit(trials=2, concurrency=2, budget=Budget(time_s=60))
    world.step()
    world.place.job(1).end()
    world.request("stop", experiment)
    world.step()
    assert world.manager.is_idle
    world.now += 100
    request = world.request("retry", experiment)
    world.step()
    assert world.store.request(request).result == {"trials": [2]}
    world.place.job(2, attempt=2).end()
    world.step()
    assert world.states(experiment) == ["SUCCEEDED", "SUCCEEDED"]


def test_how_long_it_took_is_counted_from_the_retry_of_what_had_ended(world):
    experiment = world.submit(trials=2, concurrency=2)
    world.step()
    world.place.job(1).end()
    world.place.job(2).end(TrialState.FAILED)
    world.step()
    assert world.store.experiment(experiment).took_s(world.now) < 5
    world.now += 86_400
    world.request("retry", experiment)
    world.step()
    assert world.store.experiment(experiment).took_s(world.now) < 5
    world.place.job(2, attempt=2).end()
    world.step()
    record, again = world.store.experiment(experiment), world.trials(experiment)[1]
    assert record.took_s(world.now + 86_400) < 5
    assert (record.created_s, again.attempt) == (1000.0, 2)
    assert again.ended_s - again.started_s < 5


def test_a_retry_of_some_trials_while_others_run_counts_from_the_submission(world):
    experiment = world.submit(trials=2, concurrency=2)
    world.step()
    world.place.job(2).end(TrialState.FAILED)
    world.step()
    world.now += 100
    world.request("retry", experiment)
    world.step()
    assert world.store.experiment(experiment).took_s(world.now) > 100


def test_a_concurrency_granted_is_kept_over_a_restart(world):
    experiment = world.submit(trials=9)
    world.step()
    good = world.request("concurrency", experiment, concurrency=3)
    bad = world.request("concurrency", experiment, concurrency=0)
    world.step()
    assert world.store.request(good).result == {"concurrency": 3}
    assert "whole number" in world.store.request(bad).result["error"]
    assert world.states(experiment) == ["RUNNING"] * 3
    world.restart()
    world.step()
    world.place.job(1).end()
    world.step()
    assert world.states(experiment) == ["SUCCEEDED"] + ["RUNNING"] * 3


def test_clean_deletes_an_ended_experiment_and_refuses_a_running_one(world):
    experiment = world.submit()
    world.home.bundle(experiment).mkdir(parents=True)
    world.step()
    refused = world.request("clean", experiment)
    world.step()
    assert "stop it first" in world.store.request(refused).result["error"]
    world.place.job(1).end()
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
    assert world.place.job(1).secrets == {"TOKEN": "s3cr3t"}
    # By another process: one that opens and closes the store's file gives up its own locks on it.
    found = subprocess.run(["grep", "-rlF", "s3cr3t", world.home.root], capture_output=True, check=False)
    assert found.stdout == b""


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
    world.place.job(1).end()
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
    ingest, failures = world.store.ingest, [OSError(28, "full")] * 3

    def full_disk(rows):
        if failures:
            raise StoreError("The disk is full.") from failures.pop()
        ingest(rows)

    monkeypatch.setattr(world.store, "ingest", full_disk)
    world.place.job(1).report(acc=0.5)
    world.place.job(1).end()
    world.step()
    assert world.pauses == [0.05, 0.1, 0.2]
    assert [p.value for p in world.store.points(experiment)] == [0.5]


def test_a_silent_place_is_named_and_then_heard_again(world):
    from jupyter_autotrain.manager import notices

    experiment = world.submit()
    world.step()
    world.place.down = "no route to host"
    world.step()
    assert "does not answer: no route to host" in notices.read(world.home.experiment(experiment))[1]
    world.place.down = ""
    world.place.job(1).end()
    world.step(15)
    assert world.states(experiment) == ["SUCCEEDED"]


def test_a_backend_that_cannot_be_made_ends_the_experiment(world):
    from jupyter_autotrain.errors import BackendError

    def refuse():
        raise BackendError("There is no backend 'mars'.")

    world.create_backend = refuse
    experiment = world.submit(backend="mars")
    world.step()
    assert world.store.experiment(experiment).state is ExperimentState.FAILED
    assert "There is no backend 'mars'" in world.store.experiment(experiment).reason


@pytest.mark.parametrize("seed", [None, 7])
def test_a_seed_is_shifted_by_the_trials_number(world, seed):
    world.submit(trials=2, concurrency=2, seed=seed)
    world.step()
    assert [world.place.job(n).trial.seed for n in (1, 2)] == ([None, None] if seed is None else [7, 8])
