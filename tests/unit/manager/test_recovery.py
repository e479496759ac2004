"""A manager that is killed between any two steps, in a simulated world."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.manager.attempts import AttemptHistory

ACTS = st.sampled_from(["kill", "step", "report", "half", "end", "fail", "lose"])


@settings(max_examples=12)
@given(st.lists(st.tuples(ACTS, st.integers(1, 4)), max_size=25))
def test_whatever_happens_nothing_is_lost_and_nothing_is_doubled(new_world, acts):
    with new_world() as world:
        experiment = world.submit(trials=4, concurrency=2, retries=1, objective=Objective("acc"))
        reported = {}
        for act, number in acts:
            do(world, act, number, reported)
        world.restart()
        finish_all(world, experiment, reported)
        seen = [(p.number, p.attempt, p.step) for p in world.store.points(experiment)]
        assert len(seen) == len(set(seen))
        assert set(seen) == {(n, a, s) for (n, a), steps in reported.items() for s in steps}
        assert all(job.starts == 1 for job in world.backend.jobs.values())
        assert all(state in {"SUCCEEDED", "FAILED", "LOST"} for state in world.states(experiment))
        for trial in world.trials(experiment):
            assert world.backend.job(trial.number, trial.attempt).state is trial.state


def do(world, act, number, reported):
    if act == "kill":
        world.restart()
    elif act == "step":
        world.step(1)
    jobs = [j for j in world.backend.jobs.values() if j.trial.number == number and not j.state.is_final]
    for job in jobs:
        touch(job, act, reported.setdefault((number, job.trial.attempt), []))


def touch(job, act, steps):
    if act in {"report", "half"}:
        job.metrics = job.metrics.rpartition(b"\n")[0] + b"\n"  # a new line begins where a broken one was
        steps.append(len(steps))
        job.report(steps[-1], acc=0.5)
        if act == "half":
            job.metrics += b'["m", 99, 1.'
    elif act == "end" and steps:
        job.end()
    elif act == "fail":
        job.end(TrialState.FAILED, "no")
    elif act == "lose":
        job.end(TrialState.LOST, "gone")


def finish_all(world, experiment, reported):
    for _ in range(60):
        world.step(1)
        if world.store.experiment(experiment).state.is_final:
            return
        for job in world.backend.jobs.values():
            if not job.state.is_final:
                key = (job.trial.number, job.trial.attempt)
                touch(job, "report", reported.setdefault(key, []))
                job.end()
    raise AssertionError(world.states(experiment))


def test_a_job_submitted_but_not_written_down_is_not_started_twice(world):
    experiment = world.submit()
    world.step()
    world.store._database._connection.execute("UPDATE trials SET state = 'PREPARING', ref = NULL")
    world.restart()
    world.step()
    assert world.states(experiment) == ["RUNNING"]
    assert len(world.backend.jobs) == 1


def test_a_retry_due_at_the_moment_of_a_kill_is_begun_after_it(world, monkeypatch):
    experiment = world.submit(retries=1)
    world.step()
    world.backend.job(1).end(TrialState.FAILED, "no")
    monkeypatch.setattr("jupyter_autotrain.manager.trial_end.retry_or_count", lambda run, number: None)
    monkeypatch.setattr("jupyter_autotrain.manager.manager.Manager._remove", lambda manager, run: None)
    world.step()
    assert world.states(experiment) == ["FAILED"]
    monkeypatch.undo()
    world.restart()
    world.step()
    assert world.trials(experiment)[0].attempt == 2


def test_held_gpus_stay_held_over_a_restart(world):
    from jupyter_autotrain.core.inventory import Accelerator, Inventory, Node
    from jupyter_autotrain.core.spec import Resources

    world.backend.inventory = Inventory((Node("here", 4.0, 8_000_000_000, (Accelerator(0, "GPU-a"),)),))
    experiment = world.submit(trials=2, concurrency=2, resources=Resources(gpus=1))
    world.step()
    world.restart()
    world.step()
    assert world.states(experiment) == ["RUNNING", "WAITING"]


def test_a_trial_that_began_and_ended_between_two_looks_took_what_it_took_there(world):
    world.backend.silent = "not asked yet"
    experiment = world.submit(trials=3, concurrency=3)
    world.step()
    assert world.states(experiment) == ["PREPARING"] * 3
    world.now += 30.0
    hour_off = 3600.0 + world.now
    world.backend.job(1).end(started_s=hour_off, ended_s=hour_off + 20.0)
    world.backend.job(2).end(started_s=hour_off, ended_s=hour_off + 9999.0)  # its clock was set meanwhile
    world.backend.job(3).end(TrialState.FAILED, "it never began", started_s=None)
    world.backend.silent = ""
    history = world.manager.runs[experiment].history
    world.step()
    assert [trial.took_s() for trial in world.trials(experiment)] == [pytest.approx(20.0), None, None]
    states = [change.state for change in world.store.state_changes(experiment) if change.number == 1]
    assert states[-3:] == ["PREPARING", "RUNNING", "SUCCEEDED"]
    after_a_restart = AttemptHistory.of(world.store.state_changes(experiment)).times("local")
    assert after_a_restart.runs_s[0] == pytest.approx(20.0)
    assert after_a_restart == history.times("local")


def test_a_trial_that_ended_while_nobody_could_ask_took_what_it_took_there(world):
    experiment = world.submit(trials=3, concurrency=3)
    world.step()
    world.backend.silent = "timed out"
    world.step()
    world.now += 600.0
    hour_off = 3600.0 + world.now
    world.backend.job(1).end(started_s=hour_off, ended_s=hour_off + 20.0)
    world.backend.job(2).end(started_s=hour_off, ended_s=hour_off + 9999.0)  # its clock was set meanwhile
    world.backend.job(3).end(started_s=hour_off, ended_s=hour_off - 9999.0)
    world.backend.silent = ""
    world.step()
    assert world.states(experiment) == ["SUCCEEDED"] * 3
    first, *others = [trial.took_s() for trial in world.trials(experiment)]
    assert first == pytest.approx(20.0)
    assert all(600.0 < took_s < 700.0 for took_s in others)
