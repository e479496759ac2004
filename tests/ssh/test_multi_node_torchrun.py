"""torchrun over two hosts: one agent on each; an elastic trial outlives the loss of a host, and takes it in again."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import SshLab
from tests.ssh.test_multi_node import Cluster

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
STEPS = """
import os, time, torch
import torch.distributed as dist
from datetime import timedelta
dist.init_process_group("gloo", timeout=timedelta(seconds=20))
begun = torch.tensor([checkpoint.load(0)])  # each host has its own disk: rank 0 tells the others where to begin
dist.broadcast(begun, 0)
step = int(begun)
while step < {steps}:
    size = torch.ones(1)
    dist.all_reduce(size)
    if rank == 0:
        report(step=step, size=size)
        checkpoint.save(step + 1, step)
    step += 1
    time.sleep({pause_s})
print("done", rank, world_size, flush=True)
"""


@pytest.fixture
def cluster(lab: SshLab, tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    made = Cluster(lab, Home(tmp_path / "home"))
    yield made
    made.backend.close()


def test_agents_on_two_hosts_make_one_group(cluster: Cluster) -> None:
    code = "report(size=world_size)\nprint('done', rank, world_size)"  # without torch, which each rank would import
    ref = cluster.submit(code, launcher="torchrun")
    end = cluster.finish(ref)
    assert end.state is TrialState.SUCCEEDED, (end.reason, cluster.text(ref, wire.LAUNCHER_LOG))
    assert cluster.text(ref) == "done 0 2\n"
    assert cluster.text(ref, "stdout-1") == "done 1 2\n"
    assert '"size":2' in cluster.text(ref, wire.METRICS)


@pytest.mark.long
def test_an_elastic_trial_goes_on_without_a_lost_host_and_with_it_when_it_is_back(cluster: Cluster) -> None:
    ref = cluster.submit(STEPS.format(steps=400, pause_s=0.2), launcher="torchrun", elastic=True)
    wait_until(lambda: '"size":2.0' in cluster.text(ref, wire.METRICS), "two hosts")
    cluster.lab.hosts[1].stop()
    before = len(cluster.text(ref, wire.METRICS))
    wait_until(lambda: '"size":1.0' in cluster.text(ref, wire.METRICS)[before:], "the smaller group")
    assert "goes on without h2, from which there is no answer" in cluster.status(ref).reason
    assert cluster.backend.sizes(ref, wire.CHECKPOINTS)
    cluster.lab.hosts[1].reboot()
    shrunk = len(cluster.text(ref, wire.METRICS))

    def has_grown() -> bool:
        cluster.status(ref)  # the backend starts the host's part again
        return '"size":2.0' in cluster.text(ref, wire.METRICS)[shrunk:]

    wait_until(has_grown, "the larger group", within_s=180)
    cluster.backend.cancel(ref, 1.0)
    cluster.assert_nothing_runs()
