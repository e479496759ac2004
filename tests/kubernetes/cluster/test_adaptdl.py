"""AdaptDLJobs of the double: phases, groups of pods, hints and addresses, as the reference lists them."""

from __future__ import annotations

import functools
import json

from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes.cluster import objects
from tests.labs.kubernetes.adaptdl.controller import ADAPTDL_JOBS
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import PODS

WAITS = "trap 'exit 143' TERM; echo up; while :; do sleep 0.05; done"


def make(cluster: KubernetesLab, script: str, **spec: object) -> None:
    template = {"spec": {"terminationGracePeriodSeconds": 5, "containers": [objects.container(script)]}}
    body = {"metadata": {"name": "j"}, "spec": {"template": template, **spec}}
    cluster.store.create(ADAPTDL_JOBS, "default", body)


def status(cluster: KubernetesLab) -> objects.Json:
    found: objects.Json = cluster.store.get(ADAPTDL_JOBS, "default", "j").get("status", {})
    return found


def wait_for_phase(cluster: KubernetesLab, phase: str, **fields: object) -> objects.Json:
    def found() -> objects.Json:
        now = status(cluster)
        is_so = now.get("phase") == phase and all(now.get(name) == value for name, value in fields.items())
        return now if is_so else {}

    return wait_until(found, f"{phase} {fields}")


def pods(cluster: KubernetesLab) -> list[objects.Json]:
    return cluster.store.list(PODS, "default", "adaptdl/job=j")[0]


def variables(pod: objects.Json) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}


def addresses_in_log(cluster: KubernetesLab, pod: objects.Json) -> str:
    found = objects.log(cluster, pod)
    return found if found.endswith("\n") else ""


def test_a_job_begins_with_one_replica_and_its_succeeded_pods_are_deleted_at_once(cluster: KubernetesLab) -> None:
    make(cluster, "while [ ! -e /dev/shm/end ]; do sleep 0.05; done", maxReplicas=4)
    found = wait_for_phase(cluster, "Running", replicas=1, readyReplicas=1, group=0)
    (pod,) = pods(cluster)
    assert pod["metadata"]["name"].startswith("j-")
    assert pod["metadata"]["name"].endswith("-0-0")
    assert pod["metadata"]["annotations"]["adaptdl/node"] == found["allocation"][0] == pod["spec"]["nodeName"]
    assert variables(pod)["ADAPTDL_JOB_ID"] == "default/j"
    assert variables(pod)["ADAPTDL_NUM_REPLICAS"] == "1"
    assert variables(pod)["NVIDIA_VISIBLE_DEVICES"] == "none"
    process = cluster.access.exec(pod, "main", ["touch", "/dev/shm/end"], stdin=0, stdout=1, stderr=2)
    assert process.wait(240) == 0
    wait_for_phase(cluster, "Succeeded")
    wait_until(lambda: not pods(cluster), "no pods")


def test_another_allocation_ends_the_pods_with_143_and_begins_the_next_group(cluster: KubernetesLab) -> None:
    make(cluster, WAITS, minReplicas=2, maxReplicas=2)
    wait_for_phase(cluster, "Running", replicas=2, group=0)
    wait_until(lambda: all(objects.log(cluster, pod) for pod in pods(cluster)), "handlers of SIGTERM")
    first = {pod["metadata"]["uid"] for pod in pods(cluster)}
    cluster.store.patch(ADAPTDL_JOBS, "default", "j", {"status": {"allocation": ["n2"]}}, subresource="status")
    wait_for_phase(cluster, "Running", replicas=1, group=1)
    (pod,) = pods(cluster)
    assert pod["metadata"]["uid"] not in first
    assert pod["spec"]["nodeName"] == "n2"
    assert variables(pod)["ADAPTDL_NUM_RESTARTS"] == "1"
    assert variables(pod)["ADAPTDL_MASTER_PORT"] == "47001"


def test_hints_give_a_job_more_replicas_and_the_supervisor_their_addresses(cluster: KubernetesLab) -> None:
    script = (
        'if [ "$ADAPTDL_NUM_REPLICAS" = 1 ]; then curl -s -X PUT -d \'{"maxProfiledReplicas": 1, "odd": 1}\' '
        f'"$ADAPTDL_SUPERVISOR_URL/hints/$ADAPTDL_JOB_ID"; {WAITS}; fi; '
        'curl -s "$ADAPTDL_SUPERVISOR_URL/discover/$ADAPTDL_JOB_ID/$ADAPTDL_NUM_RESTARTS"; echo; sleep 600'
    )
    make(cluster, script, maxReplicas=4)
    wait_for_phase(cluster, "Running", replicas=2, group=1)
    assert status(cluster)["train"] == {"maxProfiledReplicas": 1}
    found = pods(cluster)
    addresses = sorted(pod["status"]["podIP"] for pod in found)
    told = [wait_until(functools.partial(addresses_in_log, cluster, pod), "the addresses") for pod in found]
    assert told[0] == told[1]
    assert sorted(json.loads(told[0])) == addresses


def test_any_other_exit_fails_the_job_and_its_failed_pods_are_kept(cluster: KubernetesLab) -> None:
    make(cluster, "exit 3")
    found = wait_for_phase(cluster, "Failed", reason="PodFailure")
    assert found["message"].endswith("Failed")
    assert len(pods(cluster)) == 1


def test_a_job_without_room_waits_until_there_is_some(cluster: KubernetesLab) -> None:
    big = {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}
    for number in (1, 2):
        spec = objects.pod_spec("sleep 600")
        spec["containers"][0]["resources"] = big
        objects.make_pod(cluster, f"other-{number}", spec)
        objects.wait_for_phase(cluster, f"other-{number}", "Running")
    template = {"spec": {"containers": [objects.container("true", resources=big)]}}
    cluster.store.create(ADAPTDL_JOBS, "default", {"metadata": {"name": "j"}, "spec": {"template": template}})
    wait_for_phase(cluster, "Pending", allocation=None)
    assert pods(cluster) == []
    cluster.store.delete(PODS, "default", "other-1", grace_s=0)
    wait_for_phase(cluster, "Succeeded")


def test_a_deleted_job_takes_its_pods_with_it(cluster: KubernetesLab) -> None:
    make(cluster, WAITS)
    wait_for_phase(cluster, "Running")
    cluster.store.delete(ADAPTDL_JOBS, "default", "j")
    wait_until(lambda: not pods(cluster), "no pods")
