"""Frameworks of the double: states, names, variables, policies and the barrier, as the reference lists them."""

from __future__ import annotations

import pytest

from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes.cluster import objects
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.controllers.framework import FRAMEWORKS
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, PODS


def role(script: str, count: int = 1, name: str = "worker", **policy: int) -> objects.Json:
    return {
        "name": name,
        "taskNumber": count,
        "frameworkAttemptCompletionPolicy": {"minFailedTaskCount": 1, "minSucceededTaskCount": -1, **policy},
        "task": {
            "retryPolicy": {"fancyRetryPolicy": False, "maxRetryCount": 0},
            "pod": {"spec": objects.pod_spec(script, terminationGracePeriodSeconds=1)},
        },
    }


def make(cluster: KubernetesLab, *roles: objects.Json, name: str = "f", **spec: object) -> None:
    retry = {"fancyRetryPolicy": False, "maxRetryCount": 0}
    body = {"executionType": "Start", "retryPolicy": retry, "taskRoles": list(roles), **spec}
    cluster.store.create(FRAMEWORKS, "default", {"metadata": {"name": name}, "spec": body})


def status(cluster: KubernetesLab) -> objects.Json:
    found: objects.Json = cluster.store.get(FRAMEWORKS, "default", "f").get("status") or {}
    return found


def wait_for_state(cluster: KubernetesLab, state: str) -> objects.Json:
    def found() -> objects.Json:
        now = status(cluster)
        return now if now.get("state") == state else {}

    return wait_until(found, state)


def completed(cluster: KubernetesLab) -> objects.Json:
    found: objects.Json = wait_for_state(cluster, "Completed")["attemptStatus"]["completionStatus"]
    return found


def pods(cluster: KubernetesLab) -> list[objects.Json]:
    return cluster.store.list(PODS, "default", "FC_FRAMEWORK_NAME=f")[0]


def test_a_framework_runs_its_tasks_and_completes_when_all_have(cluster: KubernetesLab) -> None:
    make(cluster, role("while [ ! -e /dev/shm/end ]; do sleep 0.05; done", 2))
    wait_for_state(cluster, "AttemptRunning")
    for name in ("f-worker-0", "f-worker-1"):
        pod = objects.wait_for_phase(cluster, name, "Running")
        process = cluster.access.exec(pod, "main", ["touch", "/dev/shm/end"], stdin=0, stdout=1, stderr=2)
        assert process.wait(240) == 0
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "ConfigMap"
    names = {entry["name"] for entry in pod["spec"]["containers"][0]["env"]}
    assert {"FC_FRAMEWORK_NAME", "FC_TASKROLE_NAME", "FC_TASK_INDEX", "FC_FRAMEWORK_ATTEMPT_ID", "FC_POD_UID"} <= names
    assert completed(cluster)["type"]["name"] == "Succeeded"
    assert pods(cluster) == []
    with pytest.raises(ApiError):
        cluster.store.get(CONFIG_MAPS, "default", "f-attempt")


def test_one_failed_task_ends_the_attempt_with_its_code_and_what_the_container_said(cluster: KubernetesLab) -> None:
    make(cluster, role("exit 3", 1, "a"), role("sleep 600", 1, "b"))
    found = completed(cluster)
    assert (found["code"], found["phrase"]) == (3, "ContainerUnrecognizedFailed")
    assert found["trigger"]["taskRoleName"] == "a"
    roles = status(cluster)["attemptStatus"]["taskRoleStatuses"]
    task = roles[0]["taskStatuses"][0]["attemptStatus"]["completionStatus"]
    assert task["pod"]["containers"][0]["code"] == 3
    assert roles[1]["taskStatuses"][0]["attemptStatus"]["completionStatus"]["code"] == -220
    wait_until(lambda: not pods(cluster), "no pods")


def test_a_chief_that_succeeds_decides_for_all(cluster: KubernetesLab) -> None:
    chief = role("exit 0", 1, "chief", minSucceededTaskCount=1)
    make(cluster, chief, role("sleep 600", 1, "worker", minFailedTaskCount=-1))
    assert completed(cluster)["type"]["name"] == "Succeeded"


def test_a_framework_is_begun_again_as_often_as_its_policy_says(cluster: KubernetesLab) -> None:
    retry = {"fancyRetryPolicy": True, "maxRetryCount": 1}
    make(cluster, role("exit 3"), retryPolicy=retry)
    assert completed(cluster)["code"] == 3
    assert status(cluster)["retryPolicyStatus"]["totalRetriedCount"] == 1
    assert status(cluster)["attemptStatus"]["id"] == 1


def test_a_deleted_pod_is_transient_and_does_not_count(cluster: KubernetesLab) -> None:
    make(
        cluster,
        role("[ $FC_FRAMEWORK_ATTEMPT_ID = 1 ] || sleep 600"),
        retryPolicy={"fancyRetryPolicy": True, "maxRetryCount": 0},
    )
    wait_for_state(cluster, "AttemptRunning")
    cluster.store.delete(PODS, "default", "f-worker-0", grace_s=0)
    assert completed(cluster)["type"]["name"] == "Succeeded"
    assert status(cluster)["retryPolicyStatus"]["accountableRetriedCount"] == 0


def test_stop_keeps_the_object_and_says_so(cluster: KubernetesLab) -> None:
    make(cluster, role("sleep 600"))
    wait_for_state(cluster, "AttemptRunning")
    cluster.store.patch(FRAMEWORKS, "default", "f", {"spec": {"executionType": "Stop"}})
    assert completed(cluster)["code"] == -210
    assert pods(cluster) == []


def test_create_alone_starts_nothing(cluster: KubernetesLab) -> None:
    make(cluster, role("true"), executionType="Create")
    wait_for_state(cluster, "AttemptCreationPending")
    assert pods(cluster) == []
    cluster.store.patch(FRAMEWORKS, "default", "f", {"spec": {"executionType": "Start"}})
    assert completed(cluster)["type"]["name"] == "Succeeded"


def test_tasks_are_added_and_taken_away_while_it_runs(cluster: KubernetesLab) -> None:
    make(cluster, role("sleep 600", 1))
    wait_for_state(cluster, "AttemptRunning")
    for count in (3, 1):
        changed = {"spec": {"taskRoles": [role("sleep 600", count)]}}
        cluster.store.patch(FRAMEWORKS, "default", "f", changed)
        wait_until(lambda count=count: len(pods(cluster)) == count, f"{count} pods")
    assert status(cluster)["state"] == "AttemptRunning"


def test_the_barrier_lets_all_begin_together_with_each_others_addresses(cluster: KubernetesLab) -> None:
    mount = [{"name": "frameworkbarrier", "mountPath": "/mnt/frameworkbarrier"}]
    script = "cd /mnt/frameworkbarrier; . ./injector.sh; echo $FB_WORKER_IPS; wc -c framework.json; sleep 600"
    both = role(script, 2)
    spec = both["task"]["pod"]["spec"]
    spec["containers"][0]["volumeMounts"] = mount
    spec["initContainers"] = [
        {"name": "barrier", "image": "frameworkcontroller/frameworkbarrier", "volumeMounts": mount}
    ]
    spec["volumes"] = [{"name": "frameworkbarrier", "emptyDir": {}}]
    make(cluster, both)
    wait_for_state(cluster, "AttemptRunning")
    wait_until(lambda: all(objects.log(cluster, pod).count("\n") == 2 for pod in pods(cluster)), "both")
    found = pods(cluster)
    addresses = ",".join(pod["status"]["podIP"] for pod in sorted(found, key=lambda pod: pod["metadata"]["name"]))
    for pod in found:
        first, second = objects.log(cluster, pod).splitlines()
        assert first == addresses
        assert second.endswith("framework.json")
