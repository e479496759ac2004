"""Tests of what several hosts tell of one trial, as one status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends import agent_answers
from jupyter_autotrain.backends.ssh.multi_node import may_lack, node_refs
from jupyter_autotrain.core.backend import JobRef, JobStatus

REF = JobRef("lab", "e-1-1", {"host": "h1", "nodes": [["h1", "a"], ["h2", "b"], ["h3", "c"]], "elastic": True})


def of_hosts(*states: TrialState | None) -> list[JobStatus]:
    """Return the status of each host; None: it does not answer."""
    found = []
    for one, state in zip(node_refs(REF), states, strict=True):
        doubt = "" if state else "it does not answer"
        found.append(JobStatus(one, state or TrialState.PREPARING, doubt=doubt, unreachable=state is None))
    return found


def test_an_elastic_trial_says_which_hosts_it_goes_on_without() -> None:
    found = agent_answers.of_first(REF, of_hosts(TrialState.RUNNING, None, TrialState.LOST))
    assert found.state is TrialState.RUNNING
    assert found.reason == "goes on without h2, h3, from which there is no answer; it takes lost hosts in again"


def test_an_elastic_trial_with_all_its_hosts_or_at_its_end_says_nothing_of_them() -> None:
    assert agent_answers.of_first(REF, of_hosts(*[TrialState.RUNNING] * 3)).reason == ""
    assert agent_answers.of_first(REF, of_hosts(TrialState.SUCCEEDED, None, None)).reason == ""


@pytest.mark.parametrize(("told_to_end_s", "state"), [(5.0, TrialState.FAILED), (3.0, TrialState.PREEMPTED)])
def test_of_a_host_that_fails_and_one_that_is_told_to_end_the_first_counts(
    told_to_end_s: float, state: TrialState
) -> None:
    preempted, failed, fine = of_hosts(TrialState.PREEMPTED, TrialState.FAILED, TrialState.SUCCEEDED)
    preempted = replace(preempted, reason="SIGTERM", detail={"failed_s": told_to_end_s, "ended_s": 9.0})
    failed = replace(failed, reason="ValueError: no data", detail={"failed_s": 4.0, "ended_s": 8.0})
    assert agent_answers.ended(REF, [preempted, failed, fine], lambda _: 0.0).state is state
    late = {"h1": 3.0, "h2": 0.0, "h3": 0.0}  # a clock that is ahead
    assert agent_answers.ended(REF, [preempted, failed, fine], late.__getitem__).state is TrialState.PREEMPTED


def test_the_files_of_an_elastic_trial_may_lack_those_of_every_host_but_the_first() -> None:
    assert [bool(may_lack(REF, one, lambda _: True)) for one in node_refs(REF)] == [False, True, True]


def test_the_files_of_another_trial_may_lack_those_of_a_lost_host_alone() -> None:
    rigid = JobRef("lab", "e-1-1", {**REF.data, "elastic": False})
    first, second, _ = node_refs(rigid)
    assert may_lack(rigid, first, lambda one: one == first)
    assert not may_lack(rigid, second, lambda one: one == first)
