"""`cluster="lab"`: the devices of a backend, in `plan`, in the verb and in a header."""

from __future__ import annotations

from pathlib import Path

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.backends.local.backend import LocalBackend
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.client import clusters
from jupyter_autotrain.core.devices import Link, LinkKind
from jupyter_autotrain.core.inventory import Accelerator, Inventory, Node
from jupyter_autotrain.core.named_clusters import hooks
from jupyter_autotrain.errors import HeaderError, PlanError
from jupyter_autotrain.parallel.graph.example_graphs import random_graph
from tests.projects import trust_project

GIB = 2**30


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
    found = hooks.find("lab")
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
    assert hooks.find("8xH100") is None
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
