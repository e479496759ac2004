"""Tests of what a cluster has, from its nodes and pods as the API lists them."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, cast

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.inventory import nodes as inventories
from jupyter_autotrain.backends.kubernetes.inventory.nodes import discover
from jupyter_autotrain.backends.kubernetes.objects.fields import parse_quantity
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.client.clusters import cluster_of
from jupyter_autotrain.errors import PlanError

A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920", "pool": "gpu"}


def node(name: str, gpus: dict | None = None, labels: dict | None = None, **spec: object) -> dict:
    allocatable = {"cpu": "31500m", "memory": "125Gi", "pods": "110", **(gpus or {})}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "labels": labels or {}}, "spec": spec,
        "status": {"allocatable": allocatable, "conditions": conditions},
    }  # fmt: skip


def pod(on: str, phase: str = "Running", init: list | None = None, **limits: str) -> dict:
    named = {name.replace("_", "/").replace("DOT", "."): value for name, value in limits.items()}
    container = {"name": "main", "resources": {"limits": named}}
    return {"spec": {"nodeName": on, "containers": [container], "initContainers": init or []},
            "status": {"phase": phase}}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", "0.5"), ("16Gi", str(2**34)), ("2", "2"), ("1e3", "1000"), ("1.5G", "1.5e9"), ("1E", "1e18"), (8, "8")],
)
def test_quantities_are_read_as_the_api_writes_them(text: object, number: str) -> None:
    assert parse_quantity(text) == Decimal(number)


def test_what_is_no_quantity_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'5x' is not a quantity"):
        parse_quantity("5x")


def test_free_is_what_pods_that_have_not_ended_leave() -> None:
    pods = [
        pod("n1", cpu="1500m", memory="25Gi", nvidiaDOTcom_gpu="3"),
        pod("n1", "Succeeded", cpu="8", nvidiaDOTcom_gpu="4"),
        pod("n1", "Failed", cpu="8"),
        pod("", "Pending", cpu="8"),
        pod("n2", cpu="8"),
    ]
    found = inventories.inventory([node("n1", {"nvidia.com/gpu": "4"}, A100)], pods, {}).nodes[0]
    assert found.cpus == 31.5
    assert found.labels == {"cpus_free": "30.000", "memory_free_bytes": str(100 * 2**30)}
    assert [gpu.busy for gpu in found.accelerators] == [False, True, True, True]
    assert {gpu.kind for gpu in found.accelerators} == {"NVIDIA-A100-SXM4-80GB"}
    assert {gpu.memory_bytes for gpu in found.accelerators} == {80 * 2**30}


def test_a_pod_asks_for_its_containers_and_sidecars_or_for_its_greatest_init_container() -> None:
    step = {"name": "load", "resources": {"requests": {"cpu": "4"}}}
    sidecar = {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    assert inventories.requests(pod("n1", init=[step], cpu="2")["spec"])["cpu"] == 4
    assert inventories.requests(pod("n1", init=[sidecar], cpu="2")["spec"])["cpu"] == 3


def test_where_pods_may_not_be_listed_what_is_free_is_not_told() -> None:
    found = inventories.inventory([node("n1", {"nvidia.com/gpu": "2"}, A100)], None, {}).nodes[0]
    assert "cpus_free" not in found.labels
    assert len(found.accelerators) == 2
    assert not any(gpu.busy for gpu in found.accelerators)


def test_nodes_that_may_not_be_listed_are_unknown_and_not_none() -> None:
    (found,) = inventories.unknown("its nodes may not be listed").nodes
    assert found.cpus is None
    assert found.unavailable == "its nodes may not be listed"


def test_taints_cordons_and_silence_keep_trials_off_a_node_unless_tolerated() -> None:
    taint = {"key": "team", "value": "vision", "effect": "NoSchedule"}
    gpu_taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    prefer = {"key": "x", "effect": "PreferNoSchedule"}
    silent = node("n4")
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    nodes = [
        node("n1", {"nvidia.com/gpu": "8"}, A100, taints=[taint]),
        node("n2", {"nvidia.com/gpu": "8"}, A100, taints=[gpu_taint, prefer]),
        node("n3", unschedulable=True),
        silent,
    ]
    found = inventories.inventory(nodes, [], {}).nodes
    assert [bool(one.unavailable) for one in found] == [True, False, True, True]
    assert "team=vision:NoSchedule" in found[0].unavailable
    assert found[0].accelerators == ()
    for toleration in ({"key": "team", "operator": "Exists"}, {"key": "team", "value": "vision"}):
        assert not inventories.inventory(nodes, [], {"tolerations": [toleration]}).nodes[0].unavailable


def test_the_node_selector_of_the_profile_chooses_the_nodes() -> None:
    nodes = [node("n1", labels=A100), node("n2")]
    found = inventories.inventory(nodes, [], {"node_selector": {"pool": "gpu"}}).nodes
    assert [one.name for one in found] == ["n1"]


def test_the_gpus_of_a_cluster_are_a_cluster_to_plan_for() -> None:
    nodes = [node(f"n{number}", {"nvidia.com/gpu": "8"}, A100) for number in (1, 2)]
    cluster = cluster_of(inventories.inventory([*nodes, node("cpu")], [], {}), "lab")
    assert cluster.devices == 16
    assert cluster.kinds[0][0].name == "A100-80GB"
    assert [level.size for level in cluster.levels] == [8, 2]


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared"])
def test_a_part_of_a_gpu_is_never_planned_for_as_the_whole(resource: str) -> None:
    found = inventories.inventory([node("n1", {resource: "7"}, A100)], [], {})
    assert len(found.nodes[0].accelerators) == 7
    with pytest.raises(PlanError, match="is not known"):
        cluster_of(found)


def test_a_mig_part_has_its_own_memory() -> None:
    found = inventories.inventory([node("n1", {"nvidia.com/mig-3g.40gb": "2"}, A100)], [], {})
    assert [gpu.memory_bytes for gpu in found.nodes[0].accelerators] == [40 * 2**30] * 2


def test_a_pod_is_counted_by_the_little_that_is_kept_of_it() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}
    whole = pod("n1", init=[sidecar, {"name": "i", "resources": {"requests": {"memory": "50Gi"}}}], cpu="1500m")
    whole["spec"]["overhead"] = {"cpu": "250m"}
    whole["spec"]["containers"][0]["env"] = [{"name": "LONG", "value": "x" * 10_000}]
    whole["metadata"] = {"name": "p", "managedFields": ["x" * 10_000]}
    ended = pod("n1", "Succeeded", cpu="8")
    kept = [inventories.slim_pod(one) for one in (whole, ended)]
    assert len(json.dumps(kept[0])) < 400
    before, after = (inventories.inventory([node("n1")], pods, {}).nodes[0].labels for pods in ([whole, ended], kept))
    assert before == after
    assert before["cpus_free"] == "27.750"


class ManyPods:
    """An API server that keeps of what it lists only what it is told to."""

    def __init__(self) -> None:
        self.kept: list[JsonObject] = []

    def list(self, object_type: ObjectType, _namespace: None, slim: Callable[[JsonObject], JsonObject] = dict) -> Any:
        if object_type.kind == "Node":
            return [node("n1")]
        self.kept = [slim({**pod("n1", cpu="8"), "metadata": {"managedFields": ["x"]}})]
        return self.kept


def test_a_discovery_holds_no_whole_pods() -> None:
    api = ManyPods()
    (found,) = discover(cast("KubernetesApi", api), {}).nodes
    assert found.labels["cpus_free"] == "23.500"
    assert "metadata" not in api.kept[0]
