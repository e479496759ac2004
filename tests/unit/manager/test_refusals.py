"""Backends that refuse a trial, as for a partition that is not there: another one gets it; it fails after the last."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, DataError
from jupyter_autotrain.manager.attempts import AttemptHistory, nodes_of
from jupyter_autotrain.manager.reasons import explain
from jupyter_autotrain.manager.start import ManagerStatus

HERE = BackendChoice(Profile("here", "test"))
LAB = BackendChoice(Profile("lab", "test", {"partition": "none"}), prefer=2.0)
BOTH = (HERE, LAB)
REFUSED = "lab refuses it on gpu1: there is no partition 'none'"


@pytest.fixture
def backends(world):
    made = {name: type(world.backend)() for name in ("here", "lab")}
    for name, backend in made.items():
        backend.name = name
    made["lab"].inventory = Inventory((Node("gpu1", 4.0),))
    made["lab"].refuses = "there is no partition 'none'"
    world.create_backend_of = lambda profile: made[profile.name]
    return made


def trial(world, number=1):
    return world.store.trial("id0", number)


def changes(world, number=1):
    return [(one.state, one.reason) for one in world.store.state_changes("id0") if one.number == number]


@pytest.mark.usefixtures("backends")
def test_a_trial_that_a_backend_refuses_goes_to_another_one_and_says_why(world, monkeypatch):
    module = sys.modules["jupyter_autotrain.manager.reasons"]
    monkeypatch.setattr(module, "status", lambda home: ManagerStatus(alive=True))
    world.submit(backends=BOTH)
    world.step()
    assert (trial(world).state, trial(world).backend, trial(world).attempt) == (TrialState.RUNNING, "here", 1)
    assert (TrialState.WAITING, REFUSED) in changes(world)
    assert trial(world).reason == REFUSED
    (sentence,) = explain(world.store, world.home, "mnist@1")
    assert sentence == f"Trial 1 was put on here as the first one there, which measures it; {REFUSED}."


def test_the_next_manager_does_not_ask_the_backend_again_that_refuses_the_trial(world, backends):
    backends["here"].unusable = "no answer"
    backends["here"].unusable_for_good = False
    world.submit(backends=BOTH)
    world.step()
    assert changes(world)[-1] == (TrialState.WAITING, REFUSED)
    world.restart()
    world.step(20)
    assert changes(world)[-1] == (TrialState.WAITING, REFUSED)
    assert len(changes(world)) == 3
    assert "on lab it is refused: there is no partition 'none'" in world.store.block_reasons("id0")[1]
    backends["here"].unusable = ""
    world.now += 6
    world.step()
    assert trial(world).backend == "here"


def test_a_trial_that_every_backend_refuses_has_failed_for_all_their_reasons(world, backends):
    backends["here"].refuses = "there is no such python"
    world.submit(backends=BOTH)
    world.step(8)
    assert trial(world).state is TrialState.FAILED
    assert trial(world).reason == f"{REFUSED}; here refuses it on here: there is no such python"
    assert world.store.experiment("id0").state is ExperimentState.FAILED


def test_a_trial_that_no_other_backend_has_room_for_has_failed(world, backends):
    backends["lab"].inventory = Inventory((Node("gpu1", 32.0),))
    world.submit(backends=BOTH, resources=Resources(cpus=16.0))
    world.step(8)
    assert trial(world).state is TrialState.FAILED
    assert trial(world).reason.startswith("on here it asks for 16 CPUs")
    assert trial(world).reason.endswith("on lab it is refused: there is no partition 'none'")


def test_a_refusal_of_the_only_backend_ends_the_trial_with_its_reason_alone(world, backends):
    world.submit(backends=(LAB,))
    world.step()
    assert (trial(world).state, trial(world).reason) == (TrialState.FAILED, "there is no partition 'none'")


def test_a_backend_that_refuses_one_trial_after_the_other_is_kept_away_from(world, backends):
    world.submit(backends=BOTH, trials=12, concurrency=1)
    for number in range(1, 13):
        world.step()
        world.now += 5
        backends["here"].job(number).end()
    world.step()
    assert set(world.states("id0")) == {"SUCCEEDED"}
    asked = sum((TrialState.WAITING, REFUSED) in changes(world, number) for number in range(1, 13))
    assert asked < 6


def test_a_trial_that_one_host_refuses_goes_to_the_next_one_also_by_the_next_manager(world, backends):
    lab = backends["lab"]
    lab.inventory = Inventory((Node("gpu1", 1.0, machine_id="m1"), Node("gpu2", 1.0, machine_id="m2")))
    submit = lab.submit
    lab.refuses = ""

    def gpu1_refuses(spec, placement, secrets):
        if placement.nodes[0].node == "gpu1":
            raise BackendError("a file lies where its folder was expected")
        return submit(spec, placement, secrets)

    lab.submit = gpu1_refuses
    world.submit(backends=(LAB,), trials=2, concurrency=2, resources=Resources(cpus=1.0))
    world.step(8)
    world.restart()
    world.step(8)
    assert sorted(world.states("id0")) == ["RUNNING", "WAITING"]
    lab.job(1 if trial(world, 1).state is TrialState.RUNNING else 2).end()
    world.step(8)
    assert {nodes_of(trial(world, number).placement)[0] for number in (1, 2)} == {"gpu2"}
    came_back = [one for number in (1, 2) for one in changes(world, number) if "refuses it on gpu1" in one[1]]
    assert sum(state is TrialState.WAITING for state, _ in came_back) <= 2


def test_a_trial_that_every_host_refuses_has_failed(world, backends):
    backends["lab"].inventory = Inventory((Node("gpu1", 1.0), Node("gpu2", 1.0)))
    world.submit(backends=(LAB,), retries=1)
    world.step(20)
    assert (trial(world).state, trial(world).attempt) == (TrialState.FAILED, 2)
    assert trial(world).reason == "lab refuses it on gpu1, gpu2: there is no partition 'none'"


def test_many_hosts_that_say_the_same_are_told_once_and_are_one_failure_until_the_end(world, backends):
    backends["lab"].inventory = Inventory(tuple(Node(f"gpu{number}", 1.0) for number in range(1, 65)))
    world.submit(backends=(LAB,))
    world.step(80)
    assert trial(world).state is TrialState.FAILED
    assert trial(world).reason == "lab refuses it on gpu1, gpu2 and 62 more: there is no partition 'none'"
    log = world.store.state_changes("id0")
    assert AttemptHistory.of(log).times("lab").failed == 2
    assert AttemptHistory.of(log[:-1]).times("lab").failed == 1


def test_data_that_has_changed_since_the_submission_is_refused_once_for_all_places(world, backends):
    backends["lab"].inventory = Inventory(tuple(Node(f"gpu{number}", 1.0) for number in range(1, 65)))
    backends["lab"].refuses = "data.images: /data/1.png was changed"
    backends["lab"].refusal = DataError
    world.submit(backends=BOTH)
    world.step(8)
    assert (trial(world).state, trial(world).reason) == (TrialState.FAILED, "data.images: /data/1.png was changed")
    assert [state for state, _ in changes(world)] == ["WAITING", "PREPARING", "FAILED"]


def test_a_refused_trial_waits_nowhere_and_the_log_has_the_place_that_refused_it(world, backends):
    backends["here"].unusable = "no answer"
    backends["here"].unusable_for_good = False
    world.submit(backends=BOTH)
    world.step()
    assert (trial(world).state, trial(world).backend) == (TrialState.WAITING, "")
    last = world.store.state_changes("id0")[-1]
    assert (last.state, last.placement.backend, nodes_of(last.placement)) == (TrialState.WAITING, "lab", ["gpu1"])


def test_a_host_that_only_does_not_answer_refuses_nothing_whatever_it_says(world, backends):
    backends["lab"].refusal = BackendUnavailableError
    backends["lab"].refuses = "refuses it on gpu1: no route to host"
    world.submit(backends=(LAB,))
    world.step()
    assert (TrialState.WAITING, "lab: refuses it on gpu1: no route to host") in changes(world)
    assert world.store.state_changes("id0")[-1].placement is None
    backends["lab"].refuses = ""
    world.now += 10
    world.step()
    assert trial(world).state is TrialState.RUNNING


def test_a_refusal_after_a_restart_says_that_the_trial_may_run(world, backends):
    lab = backends["lab"]
    submit = lab.submit

    def killed(spec, placement, secrets):
        raise SystemExit

    lab.submit = killed
    world.submit(backends=BOTH)
    with pytest.raises(SystemExit):
        world.step()
    lab.submit = submit
    world.restart()
    world.step()
    assert trial(world).state is TrialState.FAILED
    assert trial(world).reason.startswith("there is no partition 'none'; whether an earlier submission has started it")


def test_a_cluster_that_chooses_nodes_itself_refuses_as_a_whole(world, backends):
    backends["lab"].capabilities = replace(backends["lab"].capabilities, queues=True)
    world.submit(backends=BOTH)
    world.step()
    assert trial(world).reason == "lab refuses it: there is no partition 'none'"
    assert trial(world).backend == "here"


def test_a_retry_asks_every_backend_again(world, backends):
    world.submit(backends=BOTH, retries=1)
    world.step()
    backends["lab"].refuses = ""
    restarted = "Lost: its host was restarted. `%autotrain retry` goes on from its last checkpoint."
    backends["here"].job(1).end(TrialState.LOST, restarted)
    world.step()
    assert (trial(world).attempt, trial(world).backend) == (2, "lab")
    again = "attempt 2 of 2; attempt 1 was lost: its host was restarted."
    assert trial(world).reason == again
    backends["lab"].job(1, 2).end()
    world.step()
    assert (trial(world).state, trial(world).reason) == (TrialState.SUCCEEDED, again)
