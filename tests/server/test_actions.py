"""Tests of what pages do: each is kept before it is acknowledged, and a manager carries it out, also a new one."""

from __future__ import annotations

import time
from contextlib import suppress

import psutil
import pytest

from jupyter_autotrain import client, manager
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.errors import UnknownExperimentError
from tests.server.jupyter import problem_of, running_server

SLEEPS = "import time\nwhile not trial.should_stop():\n    time.sleep(0.02)\n"
RESUMES = """
import time
for step in range(trial.checkpoint.load(0), 1_000):
    trial.report(step=step, acc=1 / (step + 1))
    print("step", step)
    trial.checkpoint.save(step + 1, step=step)
    if trial.should_stop():
        break
    time.sleep(0.02)
"""
REPORTS = "trial.report(loss=1.0)\n"
FAILS = "raise ValueError('broken on purpose')\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yield a server of its own: where a manager lives, it would run what other tests put into a home."""
    with running_server(tmp_path_factory.mktemp("actions")) as server:
        yield server


@pytest.fixture
def run(server, monkeypatch):
    """Submit source as a notebook would; what still runs at the end of the test is stopped."""
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(server.home.root))
    submitted = []

    def submitting(source, **header):
        submitted.append(submit(source, **header))
        return submitted[-1]

    yield submitting
    for experiment in submitted:
        with suppress(UnknownExperimentError):
            experiment.stop(grace_s=0)
        experiment.store.close()


def until(condition, timeout_s=120):
    """Wait until the condition gives something true, and give it."""
    deadline_s = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline_s, condition
        time.sleep(0.05)
    return found


def act(server, experiment, action, **options):
    return server.ask("POST", f"/experiments/{experiment.id}/actions", json={"action": action, **options})


def answered(server, answer):
    """Return the manager's answer to an action that was kept."""
    assert answer.status_code == 202, answer.text
    path = f"/requests/{answer.json()['request']}"
    return until(lambda: (found := server.get(path))["done"] and found["result"])


def running(server, experiment):
    return server.get(f"/experiments/{experiment.id}/trials", state="RUNNING")["trials"]


def test_an_experiment_is_stopped_resumed_and_deleted(server, run):
    experiment = run(SLEEPS, name="sleeper", trials=1)
    until(lambda: running(server, experiment))
    receipt = answered(server, act(server, experiment, "stop", grace_s=1))
    assert receipt["trials"] == [1]
    until(lambda: server.get(f"/experiments/{experiment.id}")["state"] == "CANCELLED")
    assert problem_of(act(server, experiment, "stop"))["status"] == 409
    assert answered(server, act(server, experiment, "resume")) == {"trials": [1]}
    until(lambda: running(server, experiment))
    assert problem_of(server.ask("DELETE", f"/experiments/{experiment.id}"))["status"] == 409
    answered(server, act(server, experiment, "stop", trials=[1], grace_s=1))
    until(lambda: server.get(f"/experiments/{experiment.id}")["final"])
    assert answered(server, server.ask("DELETE", f"/experiments/{experiment.id}"))["deleted"] is True
    assert server.ask("GET", f"/experiments/{experiment.id}").status_code == 404
    assert not server.home.experiment(experiment.id).exists()


def test_a_trial_that_resumes_from_its_checkpoint_goes_on_with_its_curve_its_value_and_a_log_of_its_own(server, run):
    experiment = run(RESUMES, name="resumer", trials=1, objective="maximize max(acc)")
    path = f"/experiments/{experiment.id}"

    def curve():
        return next(iter(server.get(f"{path}/series", metric="acc")["curves"]), {"steps": []})

    until(lambda: len(curve()["steps"]) > 5)
    answered(server, act(server, experiment, "stop"))
    until(lambda: server.get(path)["final"])
    first = len(curve()["steps"])
    assert answered(server, act(server, experiment, "resume")) == {"trials": [1]}
    assert server.get(path)["best"] == {"trial": 1, "value": 1.0}
    until(lambda: len(curve()["steps"]) > first + 5)
    answered(server, act(server, experiment, "stop"))
    until(lambda: server.get(path)["final"])
    joined = curve()
    assert joined["steps"] == list(range(len(joined["steps"])))
    assert joined["values"] == [1 / (step + 1) for step in joined["steps"]]
    assert server.get(path)["best"] == {"trial": 1, "value": 1.0}
    assert {row["attempt"] for row in experiment.metrics()} == {1, 2}
    assert problem_of(act(server, experiment, "continue"))["status"] == 409
    assert answered(server, act(server, experiment, "continue", trials=[1])) == {"trials": [2]}
    cloned = server.get(f"{path}/trials")["trials"][1]
    assert (cloned["started_from"], cloned["parent"]) == ("trial 1", 1)
    begins = [server.get(f"{path}/trials/1/log", attempt=attempt, begin_bytes=0)["text"][:7] for attempt in (1, 2)]
    assert (begins[0], begins[1] == begins[0]) == ("step 0\n", False)


def test_failed_trials_are_tried_again_and_not_resumed(server, run):
    experiment = run(FAILS, name="broken", trials=1)
    until(lambda: server.get(f"/experiments/{experiment.id}")["final"])
    refused = problem_of(act(server, experiment, "resume"))
    assert "CANCELLED" in refused["expected"]
    assert answered(server, act(server, experiment, "retry", trials=[1])) == {"trials": [1]}
    until(lambda: server.get(f"/experiments/{experiment.id}/trials")["trials"][0]["attempt"] == 2)


def test_a_stored_cell_is_submitted_again(server, run):
    experiment = run(REPORTS, name="reporter", objective="minimize loss")
    until(lambda: server.get(f"/experiments/{experiment.id}")["final"])
    again = act(server, experiment, "rerun")
    assert again.status_code == 202, again.text
    found = again.json()
    assert found["name"] == "reporter@2"
    until(lambda: server.get(f"/experiments/{found['experiment']}")["final"])
    assert server.get(f"/experiments/{found['experiment']}")["best"] == {"trial": 1, "value": 1.0}
    code = server.get(f"/experiments/{experiment.id}/code")["script"]
    assert server.get(f"/experiments/{found['experiment']}/code")["script"] == code


def test_a_cell_whose_code_is_gone_is_refused(server, filler):
    filler.done("gone1")
    (server.home.bundle("gone1") / "main.py").unlink()
    answer = server.ask("POST", "/experiments/gone1/actions", json={"action": "rerun"})
    assert "is gone" in problem_of(answer)["detail"]
    assert server.ask("GET", "/experiments/gone1/code").status_code == 404


def test_a_dead_manager_is_told_and_an_action_starts_another(server, run):
    experiment = run(SLEEPS, name="orphan", trials=1)
    until(lambda: running(server, experiment))
    server.end_manager()
    assert server.get("/manager")["alive"] is False
    assert server.get(f"/experiments/{experiment.id}")["manager"] == {"alive": False}
    assert server.get("/experiments")["manager"] == {"alive": False}
    assert manager.status(server.home).alive is False  # reading starts none
    answered(server, act(server, experiment, "stop", grace_s=1))
    assert server.get("/manager")["alive"] is True
    until(lambda: server.get(f"/experiments/{experiment.id}")["final"])


def test_the_manager_is_started_on_request(server, filler):
    filler.done("m1")
    server.end_manager()
    assert server.ask("POST", "/manager").json()["alive"] is True
    assert psutil.pid_exists(manager.status(server.home).pid)


def test_a_request_that_no_manager_can_take_is_kept(server, filler, monkeypatch):
    filler.done("k1")
    server.end_manager()
    log = server.home.manager_log
    log.unlink(missing_ok=True)
    log.mkdir()
    try:
        refused = problem_of(server.ask("DELETE", "/experiments/k1"))
        assert refused["status"] == 503
        assert "is kept" in refused["expected"]
    finally:
        log.rmdir()
    assert filler.store.ids() & {"k1"}
    server.ask("POST", "/manager")
    until(lambda: "k1" not in filler.store.ids())


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "explode"},
        {"action": "stop", "trials": []},
        {"action": "stop", "trials": [0]},
        {"action": "stop", "trials": ["1"]},
        {"action": "stop", "grace_s": -1},
        {"action": "stop", "experiment": "other"},
    ],
)
def test_a_faulty_action_is_refused(server, filler, body):
    if "f1" not in filler.store.ids():
        filler.experiment("f1")
    assert problem_of(server.ask("POST", "/experiments/f1/actions", json=body))["status"] == 400
    assert [request for request in filler.store.pending_requests() if request.experiment_id == "f1"] == []


def test_what_is_attached_sees_what_a_page_did(server, run):
    experiment = run(SLEEPS, name="attached", trials=1)
    until(lambda: running(server, experiment))
    answered(server, act(server, experiment, "stop", grace_s=1))
    attached = client.attach(experiment.id, home=server.home)
    until(lambda: attached.state == "CANCELLED")
