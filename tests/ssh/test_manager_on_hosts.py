"""A real manager with trials on real hosts: killed, cut off, and with a host that is restarted."""

from __future__ import annotations

import time

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.profile import LOCAL
from tests.labs.ssh_lab import SshLab
from tests.ssh.served_home import ServedHome, until


def nothing_left(lab: SshLab) -> bool:
    return not any("start.py supervisor" in command for host in lab.hosts for command in host.commands().values())


@pytest.mark.parametrize(("trials", "kills"), [(4, 1), pytest.param(30, 2, marks=pytest.mark.long)])
def test_the_next_manager_finds_every_trial_on_every_host_and_no_report_is_lost_or_doubled(
    served: ServedHome, lab: SshLab, trials: int, kills: int
) -> None:
    experiment = served.submit(("h1", "h2", "h3"), trials=trials, concurrency=trials)
    until(lambda: len(served.steps()) > trials // 2, "the first reports")
    for _ in range(kills):
        served.kill()
        served.begin()
        before = sum(map(len, served.steps().values()))
        until(lambda before=before: sum(map(len, served.steps().values())) > before + trials, "more reports")  # type: ignore[misc]  # bound at once
    served.end()
    assert served.states() == [TrialState.SUCCEEDED] * trials
    assert set(served.steps()) == {(number, 1) for number in range(1, trials + 1)}
    served.assert_whole(experiment)
    assert set(served.nodes().values()) == {"h1", "h2", "h3"}
    until(lambda: nothing_left(lab), "the end of all supervisors")
    assert experiment.why() == []


def test_a_cut_host_is_named_with_its_trials_and_read_on_after_healing_also_by_the_next_manager(
    served: ServedHome, lab: SshLab
) -> None:
    experiment = served.submit(("h1", "h2"), trials=4, concurrency=4)
    served.all_run(4)
    here = [number for number, node in served.nodes().items() if node == "h1"]
    assert len(here) == 2
    lab.hosts[0].cut()
    (node,) = until(lambda: [node for node in served.store.unreachable_nodes("e1") if node.trials == 2], "the cut")
    assert node.name == "h1"
    assert any(
        one.startswith("h1 does not answer since ") and "2 trials go on there" in one for one in experiment.why()
    )
    served.kill()
    served.begin()
    lab.hosts[0].heal()
    served.end()
    assert served.store.unreachable_nodes("e1") == []
    assert served.states() == [TrialState.SUCCEEDED] * 4
    assert set(served.steps()) == {(number, 1) for number in range(1, 5)}
    served.assert_whole(experiment)


def test_a_stop_while_a_host_is_cut_returns_and_is_told_when_it_answers(served: ServedHome, lab: SshLab) -> None:
    experiment = served.submit(("h1", "h2"), trials=2, concurrency=2)
    served.all_run(2)
    host = lab.hosts[0]
    host.cut()
    receipt = experiment.stop(timeout_s=200.0)
    assert "h1 does not answer since" in str(receipt)
    assert sorted(served.states()) == [TrialState.CANCELLED, TrialState.RUNNING]
    served.kill()
    host.heal()
    served.begin()
    until(lambda: served.store.experiment("e1").state.is_final, "the end")
    assert served.states() == [TrialState.CANCELLED] * 2
    until(lambda: nothing_left(lab), "the end of all supervisors")


def test_a_host_that_hangs_is_named_by_why_and_by_stop(served: ServedHome, lab: SshLab) -> None:
    experiment = served.submit(("h1", "h2"), trials=2, concurrency=2)
    served.all_run(2)
    host = lab.hosts[0]
    host.freeze()
    try:
        until(lambda: any(one.startswith("h1 does not answer since ") for one in experiment.why()), "the silence")
        begun_s = time.monotonic()
        receipt = experiment.stop(timeout_s=600.0)
        assert time.monotonic() - begun_s < 300.0
        assert "h1 does not answer since" in str(receipt)
        assert receipt.pids_ended or receipt.pids_killed  # those of h2
    finally:
        host.thaw()
    until(lambda: served.store.experiment("e1").state.is_final, "the end")
    assert served.states() == [TrialState.CANCELLED] * 2
    until(lambda: nothing_left(lab), "the end of all supervisors")


def test_a_trial_of_a_host_that_is_restarted_is_lost_for_that_reason_and_tried_again_on_another(
    served: ServedHome, lab: SshLab
) -> None:
    experiment = served.submit(("h1", "h2"), trials=2, concurrency=2, retries=1)
    served.all_run(2)
    (number,) = [number for number, node in served.nodes().items() if node == "h1"]
    lab.hosts[0].reboot()
    until(lambda: (number, 2) in served.steps(), "the second attempt")
    served.end()
    assert served.states() == [TrialState.SUCCEEDED] * 2
    assert served.nodes()[number] == "h2"
    (reason,) = [change.reason for change in served.store.state_changes("e1") if change.state is TrialState.LOST]
    assert "the machine was restarted" in reason
    assert served.steps()[number, 2] == list(range(int(experiment.logs(number))))


def test_trials_of_one_experiment_run_here_and_there_and_give_the_same_with_the_same_seed(
    served: ServedHome, lab: SshLab
) -> None:
    assert lab.hosts
    hosts = served.lab(("h1", "h2"))
    there = served.values("there", hosts, trials=4)  # the manager knows them from here on
    both = served.values("both", LOCAL, hosts, trials=4)
    assert {trial.backend for trial in served.store.trials("both")} == {"local", "lab"}
    assert len(set(there.values())) == 4
    assert served.values("here", LOCAL, trials=4) == both == there
