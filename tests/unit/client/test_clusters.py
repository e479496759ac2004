"""Devices of a backend as a cluster to plan for, and `cluster="lab"`: in `plan`, in the verb and in a header."""

from __future__ import annotations

from pathlib import Path

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.backends.local.backend import LocalBackend
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.client import clusters
from jupyter_autotrain.client.clusters import cluster_of
from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.devices import Link, LinkKind
from jupyter_autotrain.core.inventory import Accelerator, Inventory, Node
from jupyter_autotrain.errors import HeaderError, PlanError
from tests.example_graphs import random_graph
from tests.projects import trust_project

GIB = 2**30


def node(name: str, kind: str | None, count: int, memory_bytes: int | None = None, link: Link | None = None) -> Node:
    gpus = [Accelerator(index, f"{name}-{index}", kind, memory_bytes) for index in range(count)]
    return Node(name, accelerators=tuple(gpus), link=link)


def test_equal_nodes_are_the_cluster_that_one_would_write_by_hand() -> None:
    kind = "NVIDIA A100-SXM4-80GB"
    cluster = cluster_of(Inventory((node("a", kind, 8, 80 * GIB), node("b", kind, 8, 80 * GIB))), "lab")
    by_hand = ClusterSpec.parse("2x8xA100-80GB")
    assert str(cluster) == "lab"
    assert (cluster.kinds, cluster.levels) == (by_hand.kinds, by_hand.levels)


@pytest.mark.parametrize(
    ("kind", "memory_bytes", "device"),
    [
        ("NVIDIA H100 80GB HBM3", 80 * GIB, "H100"),
        ("Tesla V100-SXM2-32GB", 32 * GIB, "V100-32GB"),
        ("NVIDIA A100-PCIE-40GB", 40 * GIB, "A100-40GB"),
        ("NVIDIA A100", None, "A100-40GB"),
    ],
)
def test_the_name_that_a_driver_gives_is_understood(kind: str, memory_bytes: int | None, device: str) -> None:
    assert cluster_of(Inventory((node("a", kind, 1, memory_bytes),))).device.name == device


def test_memory_is_what_the_backend_reports() -> None:
    cluster = cluster_of(Inventory((node("a", "NVIDIA H100", 2, 79 * GIB),)))
    assert cluster.device.memory_bytes == 79 * GIB
    assert cluster.device.usable_bytes < 79 * GIB


def test_links_that_are_known_go_before_those_of_the_data_sheet() -> None:
    pcie = Link(LinkKind.SWITCH, 32e9, 10e-6)
    slow = Link(LinkKind.SWITCH, 1.25e9, 100e-6)
    cluster = cluster_of(Inventory((node("a", "H100", 4, link=pcie), node("b", "H100", 4, link=pcie)), network=slow))
    assert [level.link for level in cluster.levels] == [pcie, slow]


def test_uneven_nodes_and_nodes_without_accelerators_make_an_uneven_cluster() -> None:
    nodes = (node("a", "A100", 4, 80 * GIB), Node("login"), node("b", "H100", 2, 80 * GIB))
    cluster = cluster_of(Inventory(nodes))
    assert [(device.name, count) for device, count in cluster.kinds] == [("A100-80GB", 4), ("H100", 2)]


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ((), "no accelerators that are known"),
        ((node("a", None, 1),), "'a' has accelerators of an unknown kind"),
        ((node("a", "Abacus 3000", 1),), "'Abacus 3000' is not known"),
    ],
)
def test_what_cannot_be_planned_for_is_told_in_three_clauses(nodes: tuple[Node, ...], found: str) -> None:
    with pytest.raises(PlanError, match=found) as caught:
        cluster_of(Inventory(nodes))
    assert caught.value.expected
    assert caught.value.action


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("JUPYTER_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "autotrain.yaml").write_text(
        "backends:\n  lab: {type: ssh, hosts: [gpu1, gpu2], network: 100Gbit/s}\n  bad: {type: ssh, hostz: [a]}\n"
    )
    trust_project(tmp_path, {"HOME": str(tmp_path)})
    return tmp_path


def gpus(name: str, count: int) -> tuple[Accelerator, ...]:
    return tuple(Accelerator(index, f"{name}-{index}", "NVIDIA A100-SXM4-80GB", 80 * GIB) for index in range(count))


def has(monkeypatch: pytest.MonkeyPatch, *nodes: Node) -> None:
    network = Link(LinkKind.SWITCH, 12.5e9, 10e-6)
    monkeypatch.setattr(SshBackend, "discover", lambda _: Inventory(nodes, network))


@pytest.mark.usefixtures("folder")
def test_the_name_of_a_profile_means_its_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, Node("gpu1", accelerators=gpus("gpu1", 4)), Node("gpu2", accelerators=gpus("gpu2", 4)))
    found = clusters.find("lab")
    assert found is not None
    assert str(found) == "lab"
    assert [(device.name, count) for device, count in found.kinds] == [("A100-80GB", 8)]
    assert found.levels[-1].link.bytes_per_s == 12.5e9


@pytest.mark.usefixtures("folder")
def test_a_plan_can_be_made_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, Node("gpu1", accelerators=gpus("gpu1", 2)))
    plan = at.plan(random_graph(1, ops=8), None, "lab", search="recursive_programming")
    assert str(plan.full_cluster) == "lab"
    assert plan.full_cluster.devices == 2


@pytest.mark.usefixtures("folder")
def test_a_cluster_that_is_written_out_is_no_backend() -> None:
    assert clusters.find("8xH100") is None
    assert clusters.find("moonbase") is None


@pytest.mark.usefixtures("folder")
def test_hosts_without_gpus_are_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, Node("gpu1", cpus=16.0), Node("gpu2", unavailable="gpu2 does not answer"))
    with pytest.raises(PlanError) as caught:
        clusters.find("lab")
    assert "gpu1: 16 CPUs; gpu2 does not answer" in caught.value.found
    assert "no data sheet for CPUs" in caught.value.expected
    assert "8xH100" in caught.value.action


@pytest.mark.usefixtures("folder")
def test_gpus_of_an_unknown_kind_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, Node("gpu1", accelerators=(Accelerator(0, "x", "Quantum 9000"),)))
    with pytest.raises(PlanError, match="'Quantum 9000' is not known"):
        clusters.find("lab")


@pytest.mark.usefixtures("folder")
def test_a_faulty_profile_is_told_with_its_line() -> None:
    with pytest.raises(HeaderError, match=r"autotrain\.yaml line 3: unknown key 'hostz'"):
        clusters.find("bad")


@pytest.mark.usefixtures("folder")
def test_this_machine_is_the_backend_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalBackend, "discover", lambda _: Inventory((Node("here", accelerators=gpus("here", 2)),)))
    found = clusters.find("local")
    assert found is not None
    assert found.devices == 2
