"""Experiments on several backends: where each trial goes, and what happens where a backend does not answer."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.client.experiment_changes import StopReceipt
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.errors import BackendUnavailableError, SubmitUnknownError
from jupyter_autotrain.manager import trial_end
from jupyter_autotrain.manager.reasons import explain
from jupyter_autotrain.manager.start import ManagerStatus

HERE = BackendChoice(Profile("here", "test"))
LAB = BackendChoice(Profile("lab", "test", {"hosts": ["gpu1", "gpu2"]}))
BOTH = (HERE, LAB)
ONE_CPU = Resources(cpus=1.0)


@pytest.fixture
def backends(world):
    """One of one node, and one of two, by the names of their profiles."""
    made = {"here": type(world.backend)(), "lab": type(world.backend)()}
    for name, backend in made.items():
        backend.name = name
    made["here"].inventory = Inventory((Node("here", 1.0, machine_id="m0"),))
    made["lab"].inventory = Inventory((Node("gpu1", 1.0, machine_id="m1"), Node("gpu2", 1.0, machine_id="m2")))
    world.create_backend_of = lambda profile: made[profile.name]
    return made


def places(world, experiment="id0"):
    return [trial.placement.backend for trial in world.trials(experiment)]


def test_a_trial_waits_for_the_backend_where_it_ends_first_and_why_says_so(world, backends):
    world.submit(backends=BOTH, trials=8, concurrency=3, resources=ONE_CPU)
    world.step()
    assert places(world) == ["here", "lab", "lab"]
    world.now += 10
    for number in (2, 3):
        backends["lab"].job(number).end()
    world.step()
    world.now += 300
    backends["here"].job(1).end()
    world.step()
    assert places(world)[3:] == ["lab", "lab", ""]  # ten seconds there, five minutes here, which is free
    reason = world.store.block_reasons("id0")[6]
    assert reason.startswith("waits for lab, where it ends first: in about")
    assert "on here in about 5 min" in reason
    sentences = explain(world.store, world.home, "mnist@1")
    assert any(one.startswith("Trial 6 waits for lab, where it ends first") for one in sentences)


def test_why_says_why_a_running_trial_is_where_it_is(world, backends, monkeypatch):
    module = sys.modules["jupyter_autotrain.manager.reasons"]
    monkeypatch.setattr(module, "status", lambda home: ManagerStatus(alive=True))
    world.submit(backends=BOTH, trials=3, concurrency=1)
    for number, name in ((1, "here"), (2, "lab")):
        world.step()
        world.now += 5 * number
        backends[name].job(number).end()
    world.step()
    (sentence,) = explain(world.store, world.home, "mnist@1")[:1]
    assert sentence.startswith("Trial 3 was put on here, where it ends first: in about")
    assert "on lab in about" in sentence


def test_what_trials_took_is_measured_again_by_the_next_manager(world, backends):
    world.submit(backends=BOTH, trials=9, concurrency=3, resources=ONE_CPU)
    world.step()
    world.now += 10
    for number in (2, 3):
        backends["lab"].job(number).end()
    world.step()
    world.now += 300
    backends["here"].job(1).end()
    for number in (4, 5):
        backends["lab"].job(number).end()
    world.step()
    (run,) = world.manager.runs.values()
    before = {name: list(run.history.times(name).runs_s) for name in ("here", "lab")}
    world.restart()
    world.step()
    (run,) = world.manager.runs.values()
    assert {name: list(run.history.times(name).runs_s) for name in ("here", "lab")} == before
    assert min(before["here"]) > 300


def test_at_most_limits_the_trials_of_an_experiment_on_a_backend(world, backends):
    world.submit(backends=(HERE, replace(LAB, at_most=1)), trials=3, concurrency=3, resources=ONE_CPU)
    world.step()
    assert places(world) == ["here", "lab", ""]
    (reason,) = world.store.block_reasons("id0").values()
    assert "on lab it waits: 1 trial of this experiment run there, its limit (`at_most`)" in reason
    backends["lab"].job(2).end()
    world.step()
    assert places(world) == ["here", "lab", "lab"]


def test_the_preferred_backend_gets_the_first_trial(world, backends):
    world.submit(backends=(HERE, replace(LAB, prefer=2.0)), trials=1)
    world.step()
    assert places(world) == ["lab"]


def test_a_trial_whose_submit_finds_no_answer_goes_to_another_backend(world, backends):
    backends["here"].refuses = "no route to host"
    backends["here"].refusal = BackendUnavailableError
    world.submit(backends=BOTH, trials=1)
    world.step(8)
    assert places(world) == ["lab"]
    changes = [(change.state, change.reason) for change in world.store.state_changes("id0")]
    assert (TrialState.WAITING, "here: no route to host") in changes
    assert world.states("id0") == ["RUNNING"]
    assert not backends["here"].jobs


def test_a_trial_of_a_host_that_finds_no_answer_goes_to_the_next_host(world, backends):
    submit = backends["lab"].submit

    def gpu1_is_gone(trial, placement, secrets):
        if placement.nodes[0].node == "gpu1":
            raise BackendUnavailableError("gpu1 cannot be reached")
        return submit(trial, placement, secrets)

    backends["lab"].submit = gpu1_is_gone
    world.submit(backends=(LAB,), trials=1)
    world.step(8)
    (trial,) = world.trials("id0")
    assert [placed.node for placed in trial.placement.nodes] == ["gpu2"]
    assert trial.attempt == 1


def test_a_trial_that_may_have_been_started_stays_where_it_may_run(world, backends):
    lab = backends["lab"]
    lab.refuses = "gpu1 does not answer"
    lab.refusal = SubmitUnknownError
    world.submit(backends=(replace(LAB, prefer=2.0), HERE), trials=1)
    world.step(6)
    assert places(world) == ["lab"]
    lab.refusal = BackendUnavailableError
    world.step(15)
    world.restart()
    world.step(15)
    assert places(world) == ["lab"]
    assert not backends["here"].jobs
    assert "gpu1" in world.store.block_reasons("id0")[1]
    lab.refuses = ""
    world.step(15)
    lab.job(1).end()
    world.step()
    assert world.states("id0") == ["SUCCEEDED"]
    assert len(lab.jobs) == 1


def test_what_waits_goes_elsewhere_when_a_backend_does_not_answer_and_what_runs_stays(world, backends):
    world.submit(backends=BOTH, trials=4, concurrency=4, resources=ONE_CPU)
    world.step()
    assert places(world) == ["here", "lab", "lab", ""]
    backends["lab"].down = "no route to host"
    world.step()
    backends["here"].job(1).end()
    world.step()
    assert places(world) == ["here", "lab", "lab", "here"]
    assert world.states("id0") == ["SUCCEEDED", "RUNNING", "RUNNING", "RUNNING"]


def test_a_backend_that_cannot_be_used_for_now_fails_nothing_and_is_used_when_it_can(world, backends):
    for backend in backends.values():
        backend.unusable = "no host answers"
        backend.unusable_for_good = False
    world.submit(backends=BOTH, trials=1)
    world.step(8)
    assert world.states("id0") == ["WAITING"]
    assert "no host answers" in world.store.block_reasons("id0")[1]
    backends["lab"].unusable = ""
    world.now += 6
    world.step()
    assert places(world) == ["lab"]


def test_only_backends_that_can_never_be_used_end_an_experiment(world, backends):
    for backend in backends.values():
        backend.unusable = "no Linux"
    world.submit(backends=BOTH, trials=2)
    world.step()
    assert world.store.experiment("id0").state is ExperimentState.FAILED
    world.submit("later", backends=(LAB,))
    world.step()
    assert world.store.trial("id1", 1).reason == "cannot run: the backend 'lab' cannot be used here: no Linux"


def test_a_node_that_does_not_answer_is_named_with_its_trials_since_when(world, backends):
    world.submit(backends=(LAB,), trials=2, concurrency=2, resources=ONE_CPU)
    world.step()
    backends["lab"].silent = "timed out"
    world.step(20)
    since = [node.since_s for node in world.store.unreachable_nodes("id0")]
    assert [(node.name, node.trials) for node in world.store.unreachable_nodes("id0")] == [("gpu1", 1), ("gpu2", 1)]
    sentences = explain(world.store, world.home, "mnist@1")
    assert any(one.startswith("gpu1 does not answer since ") and "1 trial goes on there" in one for one in sentences)
    world.now += 600
    world.restart()
    world.step(20)
    assert [node.since_s for node in world.store.unreachable_nodes("id0")] == since
    backends["lab"].silent = ""
    world.step(40)
    assert world.store.unreachable_nodes("id0") == []
    assert world.store.block_reasons("id0") == {}


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_trial_lost_with_its_host_is_tried_once_more_on_another(world, backends, is_killed, monkeypatch):
    world.submit(backends=(LAB,), trials=1)
    world.step()
    (trial,) = world.trials("id0")
    first = trial.placement.nodes[0].node
    backends["lab"].job(1).end(TrialState.LOST, "Lost: its host was restarted. `%autotrain retry` goes on.")
    if is_killed:
        with monkeypatch.context() as patch:
            patch.setattr(trial_end, "retry_or_count", lambda run, number: sys.exit())  # as kill -9 right there
            with pytest.raises(SystemExit):
                world.step()
    world.restart()
    world.step()
    (trial,) = world.trials("id0")
    assert (trial.attempt, trial.state) == (2, TrialState.RUNNING)
    assert trial.placement.nodes[0].node != first
    reasons = [change.reason for change in world.store.state_changes("id0") if change.state is TrialState.LOST]
    assert reasons == ["Lost: its host was restarted; it is tried once more elsewhere"]
    backends["lab"].job(1, attempt=2).end(TrialState.LOST, "its host was restarted too")
    world.step()
    assert world.states("id0") == ["LOST"]


def test_the_attempt_that_a_lost_host_cost_is_no_retry_of_the_cell(world, backends):
    world.submit(backends=(LAB,), trials=1, retries=1)
    ends = (TrialState.FAILED, TrialState.LOST, TrialState.FAILED)
    for attempt, state in enumerate(ends, 1):
        world.step()
        backends["lab"].job(1, attempt).end(state, "no")
    world.step()
    (trial,) = world.trials("id0")
    assert (trial.attempt, trial.state) == (3, TrialState.FAILED)


def test_a_trial_is_not_tried_again_where_no_other_place_could_take_it(world, backends):
    world.submit(backends=(HERE,), trials=1)
    world.submit("large", backends=BOTH, trials=1, resources=Resources(cpus=1.0, nodes=2))
    world.step()
    backends["here"].job(1).end(TrialState.LOST, "gone")
    backends["lab"].job(1).end(TrialState.LOST, "gone")
    world.step()
    assert world.states("id0") == world.states("id1") == ["LOST"]


def test_a_stop_while_a_node_does_not_answer_returns_and_is_carried_out_later(world, backends):
    world.submit(backends=BOTH, trials=2, concurrency=2, resources=ONE_CPU)
    world.step()
    backends["lab"].silent = "timed out"
    world.step(20)
    request = world.request("stop", "id0")
    world.step(30)
    answer = world.store.request(request)
    assert answer.done
    assert answer.result["pids_ended"] == [101]
    text = str(StopReceipt.of("mnist", answer.result))
    assert "gpu1 does not answer since" in text
    assert "nothing is left" not in text
    assert world.store.experiment("id0").state is ExperimentState.STOPPING
    world.restart()
    world.step(20)
    assert world.states("id0") == ["CANCELLED", "RUNNING"]
    backends["lab"].silent = ""
    world.step(60)
    assert world.states("id0") == ["CANCELLED", "CANCELLED"]
    assert backends["lab"].cancelled == ["id0-2-1"]


def test_of_two_nodes_that_share_a_trial_only_the_one_that_does_not_answer_is_named(world, backends):
    world.submit(backends=(LAB,), trials=1, resources=Resources(cpus=1.0, nodes=2))
    world.step()
    backends["lab"].silent = "timed out"
    backends["lab"].silent_nodes = ("gpu2",)
    world.step(20)
    sentences = explain(world.store, world.home, "mnist@1")
    assert [one for one in sentences if one.startswith("gpu")] == [
        one for one in sentences if one.startswith("gpu2 does not answer since ") and "1 trial goes on there" in one
    ]
    reason = world.store.block_reasons("id0")[1]
    assert reason.startswith("is on gpu1, gpu2; gpu2 does not answer since ")
    request = world.request("stop", "id0")
    world.step(30)
    receipt = StopReceipt.of("mnist", world.store.request(request).result)
    first, later = str(receipt).splitlines()
    assert "2 processes ended (pids 201, 202)" in first
    assert "nothing is left" not in first
    assert later.startswith("gpu2 does not answer since ")
    world.restart()
    world.step(20)
    assert [node.name for node in world.store.unreachable_nodes("id0")] == ["gpu2"]
    backends["lab"].silent = ""
    world.step(60)
    assert world.states("id0") == ["CANCELLED"]


def test_a_stop_names_only_the_nodes_of_what_is_stopped(world, backends):
    world.submit(backends=(LAB,), trials=2, concurrency=2, resources=ONE_CPU)
    world.step()
    backends["lab"].silent = "timed out"
    world.step(20)
    request = world.request("stop", "id0", trials=[1])
    world.step(30)
    (sentence,) = world.store.request(request).result["unreachable"]
    assert sentence.startswith("gpu1 does not answer since ")


def nodes_of(trial):
    return [placed.node for placed in trial.placement.nodes]


def test_two_profiles_that_name_the_same_machine_do_not_double_book_it(world, backends):
    backends["here"].inventory = Inventory((Node("here", 1.0, machine_id="m1"),))
    world.submit(backends=(HERE,), trials=1, resources=ONE_CPU)
    world.step()
    world.submit("other", backends=(LAB,), trials=2, concurrency=2, resources=ONE_CPU)
    world.step()
    assert [nodes_of(trial) for trial in world.trials("id1")] == [["gpu2"], []]
    assert "on gpu1 it waits for 1 CPU" in world.store.block_reasons("id1")[2]
    assert "trial 1 of mnist@1 holds 1 CPU" in world.store.block_reasons("id1")[2]
    world.restart()
    world.step()
    assert [nodes_of(trial) for trial in world.trials("id1")] == [["gpu2"], []]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_retry_goes_where_its_checkpoints_lie_while_there_is_room(world, backends, restarts):
    backends["lab"].inventory = Inventory((Node("gpu1", 8.0, machine_id="m1"), Node("gpu2", 2.0, machine_id="m2")))
    world.submit(backends=(LAB,), trials=6, concurrency=6, retries=1, resources=ONE_CPU)
    world.step()
    there = {trial.number: trial.placement.nodes[0].node for trial in world.trials("id0")}
    number = next(number for number, node in there.items() if node == "gpu2")
    others = [one for one in there if one != number]
    for one in others:
        backends["lab"].job(one).end()
    backends["lab"].job(number).end(TrialState.FAILED)
    if restarts:
        world.restart()
    world.step(8)
    trial = world.store.trial("id0", number)
    assert (trial.attempt, trial.placement.nodes[0].node) == (2, "gpu2")


def test_a_place_that_has_not_answered_for_long_is_named_while_it_is_asked(world, backends):
    world.submit(backends=(LAB,), trials=1, resources=ONE_CPU)
    world.step()
    poll = backends["lab"].poll
    told = []

    def slow_poll(refs):
        world.now += 25
        world.manager.step((), read_store=True)  # its thread goes on while another one waits here
        told.append(dict(world.store.block_reasons("id0")))
        return poll(refs)

    backends["lab"].poll = slow_poll
    world.step(1)
    backends["lab"].poll = poll
    assert told[0][1].startswith("is on gpu1, which does not answer since ")
    world.step()
    assert world.store.block_reasons("id0") == {}
    assert world.store.unreachable_nodes("id0") == []


def test_a_trial_whose_place_cannot_be_asked_any_more_is_not_tried_again_as_it_may_still_run(world, backends):
    world.submit(backends=BOTH, trials=2, concurrency=2, resources=ONE_CPU, retries=3)
    world.step()
    assert places(world) == ["here", "lab"]

    def create(profile):
        if profile.name == "lab":
            raise RuntimeError("its package is gone")
        return backends[profile.name]

    world.create_backend_of = create
    for _ in range(2):
        world.restart()
        world.step()
        assert world.states("id0") == ["RUNNING", "LOST"]
    reason = world.trials("id0")[1].reason
    assert reason == "the backend 'lab' cannot be used: its package is gone; it may still run there"


def test_a_clone_goes_where_its_source_has_left_its_checkpoint_and_waits_for_that_place(world, backends):
    world.submit(backends=BOTH, trials=3, concurrency=4, resources=ONE_CPU)
    world.step()
    assert places(world) == ["here", "lab", "lab"]
    backends["here"].job(1).end()
    backends["lab"].job(2).end()
    world.step()
    world.request("continue", "id0", trials=[2, 2, 1], params={})
    world.step()
    assert places(world) == ["here", "lab", "lab", "lab", "", "here"]
    assert "CPU" in world.store.block_reasons("id0")[5]
    backends["lab"].job(3).end()
    world.step()
    assert places(world)[4] == "lab"
