"""Trials as Frameworks: what is rendered, and what their states mean."""

import base64
import gzip
import json
import re

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes import framework_backend
from jupyter_autotrain.backends.kubernetes.objects.workload import OFFSET_VARIABLE
from jupyter_autotrain.errors import BackendError
from tests.unit.backends.kubernetes.goldens import check_golden
from tests.unit.backends.kubernetes.pods import ended_container, pod, waiting_container
from tests.unit.backends.kubernetes.requests import OPTIONS, request

WORKLOAD = framework_backend.Framework()
NAME = WORKLOAD.object_name("ab12-3-1", "home")
ROLES = [
    {"name": "chief", "task_number": 1, "min_succeeded_tasks": 1},
    {"name": "worker", "task_number": 3, "min_failed_tasks": -1},
]


def state(name, *pods, attempt=0, **completion):
    status = {"state": name, "attemptStatus": {"id": attempt, "completionStatus": completion or None}}
    return WORKLOAD.state({"spec": {"executionType": "Start"}, "status": status}, list(pods))


def failed(code, **more):
    return {"code": code, "type": {"name": "Failed", "attributes": []}, **more}


def test_the_golden_manifests_are_as_they_were(request_golden):
    check_golden(request_golden, "framework.json", WORKLOAD.render(request(NAME)))
    several = request(NAME, nodes=4, options={**OPTIONS, "task_roles": ROLES, "max_retry_count": 2})
    check_golden(request_golden, "framework_roles.json", WORKLOAD.render(several))


def test_its_name_has_letters_and_digits_alone():
    assert re.fullmatch(r"[a-z0-9]{1,63}", NAME)
    assert re.fullmatch(r"[a-z0-9]{1,63}", WORKLOAD.object_name("A_b-" * 40, "home"))
    assert WORKLOAD.object_name("ab12-31", "h") != WORKLOAD.object_name("ab12-3-1", "h")


def test_several_nodes_wait_for_each_other_at_the_barrier():
    (alone,) = WORKLOAD.render(request(NAME))
    names = [one["name"] for one in alone["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["initContainers"]]
    assert "frameworkbarrier" not in names
    (several,) = WORKLOAD.render(request(NAME, nodes=2))
    spec = several["spec"]["taskRoles"][0]["task"]["pod"]["spec"]
    assert [container["name"] for container in spec["initContainers"]] == ["frameworkbarrier", "autotrain-folders"]
    assert "/mnt/frameworkbarrier" in [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]]
    (own,) = WORKLOAD.render(request(NAME, nodes=2, options={**OPTIONS, "barrier_image": "mirror/barrier:1"}))
    pods = own["spec"]["taskRoles"][0]["task"]["pod"]["spec"]
    assert pods["initContainers"][0]["image"] == "mirror/barrier:1"


def test_a_barrier_without_a_service_account_is_refused():
    with pytest.raises(BackendError, match="service_account"):
        WORKLOAD.render(request(NAME, nodes=2, options={}))


def test_each_role_knows_the_number_of_its_first_node():
    (found,) = WORKLOAD.render(request(NAME, nodes=4, options={**OPTIONS, "task_roles": ROLES}))
    firsts = []
    for role in found["spec"]["taskRoles"]:
        variables = role["task"]["pod"]["spec"]["containers"][0]["env"]
        firsts += [one["value"] for one in variables if one["name"] == OFFSET_VARIABLE]
    assert firsts == ["0", "1"]


def test_roles_must_have_as_many_tasks_as_the_trial_has_nodes():
    with pytest.raises(BackendError, match="`task_roles` have 4 tasks in all, and the trial has 2 nodes"):
        WORKLOAD.render(request(NAME, nodes=2, options={**OPTIONS, "task_roles": ROLES}))


def test_a_retry_of_the_whole_needs_a_volume():
    with pytest.raises(BackendError, match="nothing that the trial saves outlives its pods"):
        WORKLOAD.render(request(NAME, options={"fancy_retry_policy": True}))


@pytest.mark.parametrize("name", ["", "AttemptCreationPending", "AttemptCreationRequested", "AttemptPreparing"])
def test_before_its_first_task_runs_it_is_prepared(name):
    assert state(name).state is TrialState.PREPARING
    assert "FrameworkController" in state(name).reason
    unpulled = pod(node="n1", containers=[waiting_container("ErrImagePull", "not found")])
    assert "waits for its image" in state(name, unpulled).reason


def test_a_framework_that_is_only_created_is_held():
    found = WORKLOAD.state({"spec": {"executionType": "Create"}}, [])
    assert "`executionType` is Create" in found.reason


@pytest.mark.parametrize(
    "name",
    ["AttemptRunning", "AttemptDeletionPending", "AttemptDeletionRequested", "AttemptDeleting", "AttemptCompleted"],
)
def test_until_it_is_completed_it_runs(name):
    assert state(name).state is TrialState.RUNNING


def test_a_second_attempt_goes_on_running():
    found = state("AttemptPreparing", attempt=1)
    assert (found.state, found.reason) == (TrialState.RUNNING, "is begun again by FrameworkController (attempt 2)")


def test_completed_says_nothing_of_success_the_attempt_does():
    assert state("Completed", code=0, type={"name": "Succeeded"}).state is TrialState.SUCCEEDED
    assert state("Completed", **failed(-210)).state is TrialState.CANCELLED
    assert state("Completed", **failed(-101)).state is TrialState.PREEMPTED
    killed = pod("Failed", containers=[ended_container(137, "OOMKilled")])
    assert state("Completed", killed, **failed(137)).reason.startswith("Out of memory")
    assert state("Completed", **failed(3, diagnostics="PodPattern matched")).reason == (
        "A container of the trial exited with code 3: PodPattern matched"
    )
    assert state("Completed", **failed(-300)).reason == "FrameworkController ended the trial."


def test_what_a_deleted_pod_said_is_read_from_the_framework():
    pod_status = {"containers": [{"name": "trial", "code": 137, "reason": "OOMKilled"}]}
    task = {"attemptStatus": {"podNodeName": "n1", "completionStatus": {**failed(137), "pod": pod_status}}}
    (found,) = WORKLOAD.render(request(NAME))
    status = {
        "id": 0,
        "completionStatus": failed(137),
        "taskRoleStatuses": [{"name": "worker", "taskStatuses": [task]}],
    }
    ended = WORKLOAD.state({**found, "status": {"state": "Completed", "attemptStatus": status}}, [])
    assert ended.reason.startswith("Out of memory: the trial used more than its limit of 4096Mi.")


def test_the_tasks_of_a_large_framework_are_unpacked():
    roles = [{"name": "worker", "taskStatuses": [{"index": 0, "state": "AttemptRunning"}]}]
    packed = base64.b64encode(gzip.compress(json.dumps(roles).encode())).decode()
    plain = {"status": {"attemptStatus": {"taskRoleStatuses": roles}}}
    large = {"status": {"attemptStatus": {"taskRoleStatuses": None, "taskRoleStatusesCompressed": packed}}}
    assert framework_backend.task_statuses(plain) == framework_backend.task_statuses(large) == roles
