"""Trials on several nodes of the double, as objects of every kind: torch, MPI, a lost worker, their end."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.kubernetes.multi_node import KINDS, MultiNode
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.custom import training_operator
from tests.labs.kubernetes.objects.resources import PODS

pytestmark = pytest.mark.fault
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
OF_TORCH = ("Job", "PyTorchJob", "TrainJob", "Framework")
OF_MPI = ("Job", "PyTorchJob", "TrainJob", "MPIJob v2beta1 of 0.8", "MPIJob v1")


def of_kinds(kinds: tuple[str, ...], *default: str) -> list[object]:
    """Return all kinds as parameters; those that are not in `default` take long."""
    return [kind if kind in default else pytest.param(kind, marks=pytest.mark.long) for kind in kinds]


RANKS = """
import os
report(all_ranks=True, mean=float(rank))
print("rank", rank, "of", world_size, "on node", os.environ["NODE_RANK"])
"""
DDP = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.ones(4, 2) * (rank + 1)).square().mean().backward()
    optimizer.step()
weights = model.module.weight.detach().clone()
others = [torch.zeros_like(weights) for _ in range(world_size)]
dist.all_gather(others, weights)
report(all_ranks=True, same=float(all(torch.equal(weights, other) for other in others)))
print("rank", rank, "of", world_size)
dist.destroy_process_group()
"""
MPI = """
from mpi4py import MPI
world = MPI.COMM_WORLD
report(total=float(world.allreduce(rank + 1)))
report(all_ranks=True, mean=float(rank))
print("rank", rank, "of", world_size)
"""
WAITS = """
import time
print("begun", flush=True)
while not should_stop():
    time.sleep(0.01)
"""


@pytest.fixture
def make(cluster: KubernetesLab, tmp_path: Path) -> Iterator[Callable[..., MultiNode]]:
    made: list[MultiNode] = []

    def make(kind: str, **options: Any) -> MultiNode:
        made.append(MultiNode(cluster, Home(tmp_path / "home"), kind, **options))
        return made[-1]

    yield make
    for one in made:
        one.backend.close()


@pytest.mark.parametrize("kind", of_kinds(KINDS, "Job", "PyTorchJob", "MPIJob v2beta1 of 0.8"))
def test_ranks_of_two_nodes_know_each_other_and_report_together(make: Callable[..., MultiNode], kind: str) -> None:
    trials = make(kind)
    ref = trials.submit(RANKS, workers=2)
    end = trials.finish(ref)
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, "")
    shown = [trials.of_rank(ref, rank) for rank in range(4)]
    assert shown == [f"rank {rank} of 4 on node {rank // 2}\n" for rank in range(4)]
    assert trials.metrics(ref) == {"mean": 1.5}
    wait_until(lambda: not trials.left(), "nothing of it in the cluster")


@pytest.mark.long
@needs_torch
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("launcher", ["env", "torchrun"])
@pytest.mark.parametrize("kind", OF_TORCH)
def test_torch_trains_one_model_on_two_nodes(
    make: Callable[..., MultiNode], kind: str, launcher: str, workers: int
) -> None:
    trials = make(kind)
    ref = trials.submit(DDP, workers=workers, launcher=launcher)
    end = trials.finish(ref)
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, ""), trials.text(ref, wire.STDERR)
    world = 2 * workers
    assert [trials.of_rank(ref, rank) for rank in range(world)] == [
        f"rank {rank} of {world}\n" for rank in range(world)
    ]
    assert trials.metrics(ref) == {"same": 1.0}


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("implementation", ["mpich", "openmpi"])
@pytest.mark.parametrize("kind", OF_MPI)
def test_mpi_reduces_over_two_nodes_without_ssh(
    make: Callable[..., MultiNode], kind: str, implementation: str, workers: int
) -> None:
    python = Path(sys.prefix) / implementation / "bin" / "python"
    if not (python.parent / "mpiexec").exists():
        pytest.skip(f"there is no {python.parent}/mpiexec: sh .ci/mpi makes it")
    trials = make(kind, python=str(python))
    ref = trials.submit(MPI, workers=workers, launcher="mpi")
    end = trials.finish(ref)
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, ""), trials.text(ref, wire.LAUNCHER_LOG)
    world = 2 * workers
    assert [trials.of_rank(ref, rank) for rank in range(world)] == [
        f"rank {rank} of {world}\n" for rank in range(world)
    ]
    assert trials.metrics(ref) == {"total": world * (world + 1) / 2, "mean": (world - 1) / 2}


@pytest.mark.parametrize("kind", of_kinds(OF_TORCH, "PyTorchJob"))
def test_a_node_that_fails_ends_the_trial_with_its_reason(make: Callable[..., MultiNode], kind: str) -> None:
    trials = make(kind)
    code = f"import os\nif rank == 1:\n    raise ValueError('no data on this node')\n{WAITS}"
    end = trials.finish(trials.submit(code))
    assert end.state is TrialState.FAILED
    assert "no data on this node" in end.reason


@pytest.mark.parametrize("nodes", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", of_kinds(OF_TORCH, "PyTorchJob"))
def test_a_deleted_pod_of_a_trial_that_is_not_elastic_loses_the_trial(
    make: Callable[..., MultiNode], kind: str, nodes: int
) -> None:
    trials = make(kind)
    ref = trials.submit(WAITS, nodes=nodes)
    trials.begun(ref, nodes)
    trials.store.delete(PODS, "default", sorted(trials.pods())[-1], grace_s=0)
    end = trials.finish(ref)
    assert end.state in {TrialState.LOST, TrialState.PREEMPTED}
    assert end.reason
    assert trials.of_rank(ref, 0) == "begun\n"
    wait_until(lambda: not trials.left(), "nothing of it in the cluster")


@pytest.mark.parametrize("kind", of_kinds(KINDS, "TrainJob"))
def test_a_cancel_returns_when_all_objects_are_gone(make: Callable[..., MultiNode], kind: str) -> None:
    trials = make(kind)
    ref = trials.submit(WAITS)
    trials.begun(ref, 2)
    receipt = trials.backend.cancel(ref, 5.0)
    assert not receipt.pids_left
    assert trials.status(ref).state is TrialState.CANCELLED
    wait_until(lambda: not trials.left(), "nothing of it in the cluster")


ELASTIC = """
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
print("begun", dist.get_world_size(), flush=True)
value = torch.ones(1)
while not should_stop():
    value.fill_(1.0)
    dist.all_reduce(value)
    report(world=float(value))
    if os.environ["GROUP_WORLD_SIZE"] == os.environ["ENDS_AT"]:
        break
    time.sleep(0.05)
dist.destroy_process_group()
"""


@pytest.mark.long
@needs_torch
def test_an_elastic_pytorchjob_goes_on_with_fewer_workers_when_it_is_scaled(make: Callable[..., MultiNode]) -> None:
    trials = make("PyTorchJob")
    ref = trials.submit(ELASTIC, nodes=3, launcher="torchrun", elastic=True, env={"ENDS_AT": "2"})
    trials.begun(ref, 1, "begun 3")
    (job,) = trials.store.list(training_operator.PYTORCHJOBS, "default")[0]
    fewer = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}}
    trials.store.patch(training_operator.PYTORCHJOBS, "default", job["metadata"]["name"], fewer)
    end = trials.finish(ref)
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, ""), trials.text(ref, wire.LAUNCHER_LOG)
    assert "begun 2" in trials.of_rank(ref, 0)


@pytest.mark.long
@needs_torch
def test_a_lost_worker_of_an_elastic_pytorchjob_comes_again(make: Callable[..., MultiNode]) -> None:
    trials = make("PyTorchJob")
    ref = trials.submit(ELASTIC, nodes=2, launcher="torchrun", elastic=True, env={"ENDS_AT": "9"})
    trials.begun(ref, 1, "begun 2")
    (worker,) = [name for name in trials.pods() if "worker" in name]
    first = trials.pods()[worker]["metadata"]["uid"]
    trials.store.delete(PODS, "default", worker, grace_s=0)
    wait_until(lambda: trials.pods().get(worker, {"metadata": {"uid": first}})["metadata"]["uid"] != first, "it again")
    wait_until(lambda: trials.of_rank(ref, 0).count("begun 2") == 2, "both again")
    trials.backend.put(ref, wire.STOP_FILE, b"")
    assert trials.finish(ref).state.is_final
