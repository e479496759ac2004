"""Tests of what the conditions of a Job and its pods mean for a trial."""

import json
from pathlib import Path

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from tests.unit.backends.kubernetes.pods import disruption, ended_container, pod

RECORDED = json.loads((Path(__file__).parents[4] / "kubernetes" / "recorded" / "jobs.json").read_text())
FAILED = [
    {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the limit"}
]


def state(*pods):
    return JobWorkload().state({"status": {"conditions": FAILED}}, list(pods))


def test_a_job_that_fails_by_a_pod_that_is_gone_is_preempted():
    found = state()
    assert found.state is TrialState.PREEMPTED
    assert "deleted by somebody else" in found.reason
    assert "Job has reached the limit" in found.reason


def test_pods_that_the_job_deletes_after_another_do_not_tell_why_it_failed():
    after = pod("Failed", containers=[ended_container(143)])
    after["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert state(after).state is TrialState.PREEMPTED


def test_a_pod_that_failed_by_itself_fails_the_trial():
    assert state(pod("Failed", containers=[ended_container(1)])).state is TrialState.FAILED
    assert state(pod("Failed")).state is TrialState.FAILED


def test_a_pod_that_the_cluster_took_tells_so():
    assert state(pod("Failed", conditions=disruption("PreemptionByScheduler"))).state is TrialState.PREEMPTED


@pytest.mark.parametrize("job", RECORDED, ids=lambda job: job["name"])
def test_a_recorded_job_has_ended_by_its_last_condition_and_not_by_its_first(job):
    first, last = job["status"]["conditions"]
    ended = JobWorkload().state(job, [])
    expected = {"Complete": TrialState.SUCCEEDED, "Failed": TrialState.PREEMPTED}  # its pods are gone
    assert ended.state is expected[last["type"]]
    assert last["message"] in ended.reason or ended.state is TrialState.SUCCEEDED
    before = {**job, "status": {**job["status"], "conditions": [first]}}
    assert not JobWorkload().state(before, []).state.is_final
