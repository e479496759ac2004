"""Queues of the double: Kueue owns `suspend`, Volcano starts all pods of a group or none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_autotrain.backends.kubernetes.objects import pending_reasons
from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes.cluster import objects
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.controllers.times import condition_of
from tests.labs.kubernetes.objects.resources import JOBS, PODS
from tests.labs.kubernetes.queues.kueue import CLUSTER_QUEUES, LABEL, WORKLOADS
from tests.labs.kubernetes.queues.volcano import ANNOTATION, POD_GROUPS

_SLEEP = "exec sleep 1000"


@pytest.fixture
def queue(cluster: KubernetesLab) -> Iterator[str]:
    cluster.install_kueue("gpus", {"nvidia.com/gpu": "2"})
    yield "gpus"
    cluster.store.delete(CLUSTER_QUEUES, "", "gpus")


def _queued_job(cluster: KubernetesLab, name: str, queue: str, gpus: int) -> None:
    container = objects.container(_SLEEP, resources={"limits": {"nvidia.com/gpu": str(gpus)}})
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {"metadata": {"name": name, "labels": {LABEL: queue}}, "spec": {"template": template}}
    cluster.store.create(JOBS, "default", body)


def test_kueue_holds_what_does_not_fit_and_lets_it_go_when_there_is_room(cluster: KubernetesLab, queue: str) -> None:
    _queued_job(cluster, "a", queue, 2)
    wait_until(lambda: objects.job(cluster, "a").get("status", {}).get("ready") == 1, "the first job")
    _queued_job(cluster, "b", queue, 1)
    objects.wait_for_condition(cluster, "b", "Suspended")
    assert objects.pods_of(cluster, "b") == []
    assert pending_reasons.queued(objects.job(cluster, "b")) == "is queued by Kueue in gpus"

    def message() -> str:
        workloads = cluster.store.list(WORKLOADS, "default")[0]
        told = [condition_of(item, "QuotaReserved") for item in workloads if "job-b" in item["metadata"]["name"]]
        return told[0]["message"] if told and told[0] else ""

    expected = "insufficient unused quota for nvidia.com/gpu in flavor default-flavor, 1 more needed"
    wait_until(lambda: expected in message(), expected)
    cluster.store.delete(JOBS, "default", "a")
    wait_until(lambda: objects.job(cluster, "b").get("status", {}).get("ready") == 1, "the second job")
    found = objects.job(cluster, "b")
    assert found["spec"]["suspend"] is False
    resumed = condition_of(found, "Suspended")
    assert resumed is not None
    assert (resumed["status"], resumed["reason"]) == ("False", "JobResumed")


def _group(cluster: KubernetesLab, name: str, members: int) -> None:
    cluster.store.create(POD_GROUPS, "default", {"metadata": {"name": name}, "spec": {"minMember": members}})
    container = objects.container(_SLEEP, resources={"limits": {"nvidia.com/gpu": "3"}})
    spec = {"restartPolicy": "Never", "schedulerName": "volcano", "containers": [container]}
    for number in range(members):
        objects.make_pod(cluster, f"{name}-{number}", spec, annotations={ANNOTATION: name})


def test_volcano_starts_a_whole_group_or_nothing_of_it(cluster: KubernetesLab) -> None:
    cluster.install_volcano()
    _group(cluster, "large", 3)

    expected = "3/3 tasks in gang unschedulable: pod group is not ready, 3 minAvailable, 3 Pending; "

    def told() -> str:
        found = condition_of(cluster.store.get(POD_GROUPS, "default", "large"), "Unschedulable") or {}
        return str(found.get("message", ""))

    wait_until(lambda: told() == expected + "Pending: 1 Unschedulable, 2 Schedulable", "a refusal of all three")
    assert all("nodeName" not in pod["spec"] for pod in cluster.store.list(PODS, "default")[0])
    _group(cluster, "small", 2)
    for number in range(2):
        objects.wait_for_phase(cluster, f"small-{number}", "Running")
    group = cluster.store.get(POD_GROUPS, "default", "small")
    wait_until(lambda: cluster.store.get(POD_GROUPS, "default", "small")["status"]["phase"] == "Running", "its phase")
    assert group["spec"]["minMember"] == 2
