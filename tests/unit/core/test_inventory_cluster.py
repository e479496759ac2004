"""What a backend has, as a cluster that a plan can be made for."""

from __future__ import annotations

import pytest

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.devices import Link, LinkKind
from jupyter_autotrain.core.inventory import Accelerator, Inventory, Node
from jupyter_autotrain.core.inventory_cluster import cluster_of
from jupyter_autotrain.errors import PlanError

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
