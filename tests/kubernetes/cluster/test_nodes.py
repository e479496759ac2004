"""Nodes of the double: who runs where, and what happens when a node, its disk or its owner goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects import trial_reasons
from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes.cluster import objects
from tests.labs.kubernetes import cluster as clusters
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.controllers.times import condition_of
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, JOBS, NODES, PODS, PRIORITY_CLASSES

_SLEEP = "exec sleep 1000"


def _told(*pods: objects.Json) -> tuple[TrialState, str]:
    """Return how pods ended, in a user's words."""
    state = trial_reasons.ended(pods)
    assert state is not None
    return state.state, state.reason


def _asking(requests: objects.Json, **more: object) -> objects.Json:
    return objects.pod_spec("", containers=[objects.container(_SLEEP, resources={"limits": requests})], **more)


def _unschedulable(cluster: KubernetesLab, name: str) -> str:
    def message() -> str:
        found = condition_of(objects.pod(cluster, name), "PodScheduled") or {}
        return str(found.get("message", "")) if found.get("reason") == "Unschedulable" else ""

    return wait_until(message, "a refusal")


def test_pods_are_spread_and_wait_when_all_gpus_are_taken(cluster: KubernetesLab) -> None:
    for name in ("a", "b"):
        objects.make_pod(cluster, name, _asking({"nvidia.com/gpu": "4"}))
        objects.wait_for_phase(cluster, name, "Running")
    assert {objects.pod(cluster, name)["spec"]["nodeName"] for name in ("a", "b")} == {"n1", "n2"}
    objects.make_pod(cluster, "c", _asking({"nvidia.com/gpu": "1"}))
    expected = (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/2 nodes "
        "are available: 2 No preemption victims found for incoming pod."
    )
    assert _unschedulable(cluster, "c") == expected
    cluster.store.delete(PODS, "default", "a", grace_s=0)
    objects.wait_for_phase(cluster, "c", "Running")


def test_selectors_taints_and_affinity_choose_the_node(cluster: KubernetesLab) -> None:
    cluster.store.patch(NODES, "", "n1", {"metadata": {"labels": {"disk": "fast"}}})
    cluster.store.patch(NODES, "", "n2", {"spec": {"taints": [{"key": "t", "value": "v", "effect": "NoSchedule"}]}})
    try:
        expression = {"key": "disk", "operator": "NotIn", "values": ["fast"]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        tolerations = [{"key": "t", "operator": "Exists"}]
        objects.make_pod(cluster, "fast", objects.pod_spec(_SLEEP, nodeSelector={"disk": "fast"}))
        objects.make_pod(cluster, "other", objects.pod_spec(_SLEEP, affinity=affinity, tolerations=tolerations))
        objects.make_pod(cluster, "none", objects.pod_spec(_SLEEP, affinity=affinity))
        assert objects.wait_for_phase(cluster, "fast", "Running")["spec"]["nodeName"] == "n1"
        assert objects.wait_for_phase(cluster, "other", "Running")["spec"]["nodeName"] == "n2"
        message = _unschedulable(cluster, "none")
        assert "1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint {t: v}." in message
    finally:
        cluster.store.patch(NODES, "", "n1", {"metadata": {"labels": {"disk": None}}})
        cluster.store.patch(NODES, "", "n2", {"spec": {"taints": None}})


def test_a_more_urgent_pod_takes_the_place_of_another(cluster: KubernetesLab) -> None:
    cluster.store.create(PRIORITY_CLASSES, "", {"metadata": {"name": "urgent"}, "value": 1000})
    for name in ("a", "b"):
        objects.make_pod(cluster, name, _asking({"cpu": "3"}, terminationGracePeriodSeconds=0))
        objects.wait_for_phase(cluster, name, "Running")
    seen: list[objects.Json] = []
    keep = lambda _type, resource, found: seen.append(found) if resource.key == PODS.key else None  # noqa: E731 - short
    cluster.store.subscribe(keep)
    objects.make_pod(cluster, "c", _asking({"cpu": "2"}, priorityClassName="urgent"))
    objects.wait_for_phase(cluster, "c", "Running")
    cluster.store.unsubscribe(keep)
    victim = next(pod for pod in seen if condition_of(pod, "DisruptionTarget"))
    node = victim["spec"]["nodeName"]
    words = f"Preempted: the scheduler gave its place on {node} to a pod of higher priority."
    assert _told(victim) == (TrialState.PREEMPTED, words)
    wait_until(lambda: len(cluster.store.list(PODS, "default")[0]) == 2, "the end of the victim")
    cluster.store.delete(PRIORITY_CLASSES, "", "urgent")


def test_pods_of_a_lost_node_are_made_on_another(cluster: KubernetesLab) -> None:
    objects.make_job(cluster, "j", objects.pod_spec(_SLEEP), backoffLimit=3)
    wait_until(lambda: objects.job(cluster, "j").get("status", {}).get("ready") == 1, "a pod")
    lost = objects.pods_of(cluster, "j")[0]
    node = lost["spec"]["nodeName"]
    cluster.nodes[node].fail()

    def others() -> list[objects.Json]:
        pods = objects.pods_of(cluster, "j")
        return [pod for pod in pods if pod["status"].get("phase") == "Running" and pod["spec"]["nodeName"] != node]

    wait_until(others, "a pod on the other node")
    first = objects.pod(cluster, lost["metadata"]["name"])
    assert condition_of(first, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    assert "deletionTimestamp" in first["metadata"]
    words = f"The node {node} was lost: it stopped to answer, or was tainted."
    assert _told(first) == (TrialState.LOST, words)
    taints = cluster.store.get(NODES, "", node)["spec"]["taints"]
    assert {taint["key"] for taint in taints} == {"node.kubernetes.io/unreachable"}
    cluster.nodes[node].recover()
    wait_until(lambda: objects.is_gone(lambda: objects.pod(cluster, lost["metadata"]["name"])), "the end of the pod")
    wait_until(lambda: not cluster.store.get(NODES, "", node)["spec"].get("taints"), "a node without taints")


def test_a_pod_that_fills_the_disk_is_evicted(cluster: KubernetesLab) -> None:
    script = "head -c 3000000 /dev/zero > /filled; exec sleep 1000"
    limits = {"limits": {"ephemeral-storage": "1Mi"}}
    objects.make_pod(cluster, "p", objects.pod_spec("", containers=[objects.container(script, resources=limits)]))
    pod = objects.wait_for_phase(cluster, "p", "Failed")
    status = pod["status"]
    assert status["reason"] == "Evicted"
    state, words = _told(pod)
    assert state is TrialState.PREEMPTED
    assert words == f"Evicted by the node {pod['spec']['nodeName']}. {status['message'].strip()}"
    assert 'exceeded its local ephemeral storage limit "1Mi"' in status["message"]


def test_what_an_owner_leaves_goes_too_unless_orphaned(cluster: KubernetesLab) -> None:
    for name in ("background", "foreground", "orphan"):
        job = objects.make_job(cluster, name, objects.pod_spec("exit 0"))
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
        body = {"metadata": {"name": name, "ownerReferences": [reference]}}
        cluster.store.create(CONFIG_MAPS, "default", body)
        objects.wait_for_condition(cluster, name, "Complete")
        cluster.store.delete(JOBS, "default", name, propagation=name.title())
        wait_until(lambda name=name: objects.is_gone(lambda: objects.job(cluster, name)), f"the end of {name}")
    for name in ("background", "foreground"):
        wait_until(lambda name=name: not objects.pods_of(cluster, name), "no pods")
        read = lambda name=name: cluster.store.get(CONFIG_MAPS, "default", name)  # noqa: E731
        wait_until(lambda read=read: objects.is_gone(read), "no ConfigMap")
    assert (
        "ownerReferences" not in cluster.store.get(CONFIG_MAPS, "default", "orphan")["metadata"]
        or not (cluster.store.get(CONFIG_MAPS, "default", "orphan")["metadata"]["ownerReferences"])
    )
    assert len(objects.pods_of(cluster, "orphan")) == 1


_MAKE = """
import sys, pathlib
from jupyter_autotrain.testing import wait_until
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import PODS
lab = KubernetesLab(pathlib.Path(sys.argv[1]))
script = f"sleep {sys.argv[2]} & exec sleep {sys.argv[2]}"
container = {"name": "m", "image": "x", "command": ["sh", "-c", script]}
lab.store.create(PODS, "default", {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
wait_until(lambda: lab.store.get(PODS, "default", "p")["status"].get("phase") == "Running", "p")
print("running", flush=True)
sys.stdin.read()
"""


def _sleepers(seconds: str) -> list[str]:
    found = subprocess.run(["ps", "-ewwo", "args="], check=True, capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if line == f"sleep {seconds}"]


def _mounts(folder: Path) -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]


def test_nothing_is_left_when_the_process_of_the_cluster_is_killed(tmp_path: Path) -> None:
    reason = clusters.missing()
    if reason:
        pytest.skip(reason)
    seconds = str(100_000 + os.getpid())  # no other process sleeps so long
    process = subprocess.Popen(
        [sys.executable, "-c", _MAKE, str(tmp_path), seconds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "running\n"
    wait_until(lambda: len(_sleepers(seconds)) == 2, "the processes of its pod")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=240)
    process.stdin.close()
    process.stdout.close()
    wait_until(lambda: not _sleepers(seconds), "no process")
    wait_until(lambda: not _of_folder(tmp_path), "no node")
    assert _mounts(tmp_path) == []


def _of_folder(folder: Path) -> list[str]:
    found = subprocess.run(["ps", "-ewwo", "args="], check=True, capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if str(folder) in line]
