"""mpiexec over two nodes of a cluster, each a host of its own, without SSH between them."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.slurm.backend import SlurmBackend
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import trial_of, wait_for_end, wait_until
from tests.labs import namespaces, slurm_lab, ssh_lab
from tests.matrices import long_besides

TWO = Resources(cpus=2, nodes=2, workers_per_node=2)
KINDS = ("mpich", "openmpi")
OURS = re.compile(r"start\.py (slurm_task|rank)|/control/|mpiexec|hydra|prte")
REDUCES = """
from mpi4py import MPI
import os, socket
report(total=float(MPI.COMM_WORLD.allreduce(rank + 1)))
report(all_ranks=True, mean=float(rank))
print(socket.gethostname(), rank, world_size, os.environ["LOCAL_RANK"], os.environ["SLURMD_NODENAME"])
"""


@pytest.fixture(scope="module")
def the_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm_lab.SlurmLab]:
    reason = ssh_lab.missing() or slurm_lab.missing()
    if reason:
        pytest.skip(reason)
    lab = ssh_lab.SshLab(tmp_path_factory.mktemp("lab"), 2, shares_files=True)
    folder = Path(tempfile.mkdtemp(prefix="at-slurm-"))
    try:
        cluster = slurm_lab.SlurmLab(folder, hosts=lab.hosts)
        yield cluster
        cluster.close()
    finally:
        lab.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def hosts(the_hosts: slurm_lab.SlurmLab, monkeypatch: pytest.MonkeyPatch) -> Iterator[slurm_lab.SlurmLab]:
    monkeypatch.setenv("SLURM_CONF", str(the_hosts.config))
    with namespaces.inside_network(the_hosts.first_pid):
        yield the_hosts
    the_hosts.clear()


def left_on(hosts: slurm_lab.SlurmLab) -> list[str]:
    """Return the command lines of a trial's processes, and of what MPI starts for it."""
    return [line for line in hosts.commands() if OURS.search(line)]


class Cluster:
    """A backend whose jobs run with the Python of an MPI's wheel."""

    def __init__(self, home: Home, kind: str) -> None:
        python = Path(sys.prefix) / kind / "bin" / "python"
        if not (python.parent / "mpiexec").exists():
            pytest.skip(f"there is no {python.parent}/mpiexec: sh .ci/mpi makes it")
        self.home = home
        self.backend = SlurmBackend(Profile("cluster", "slurm", {"python": str(python)}), BackendContext(home))

    def submit(self, code: str, number: int = 1) -> JobRef:
        trial = trial_of(self.home, code, number=number, resources=TWO, launcher="mpi")
        return self.backend.submit(trial, Placement(), {})

    def text(self, ref: JobRef, stream: str) -> str:
        return self.backend.read([Cursor(ref, stream, 0)])[0].data.decode()


@pytest.mark.parametrize("kind", KINDS)
def test_mpi4py_reduces_over_ranks_on_two_nodes(hosts: slurm_lab.SlurmLab, tmp_path: Path, kind: str) -> None:
    cluster = Cluster(Home(tmp_path / "home"), kind)
    ref = cluster.submit(REDUCES)
    ended = wait_for_end(cluster.backend, ref)
    assert (ended.state, ended.reason) == (TrialState.SUCCEEDED, ""), cluster.text(ref, wire.LAUNCHER_LOG)
    said = [cluster.text(ref, wire.stream_of_rank(wire.STDOUT, rank)).split() for rank in range(4)]
    assert said == [[f"h{1 + k // 2}", str(k), "4", str(k % 2), f"n{1 + k // 2}"] for k in range(4)]
    metrics = cluster.text(ref, wire.METRICS)
    assert '{"total":10.0}' in metrics
    assert '{"mean": 1.5}' in metrics


@pytest.mark.parametrize("kind", long_besides(["openmpi"], KINDS))
def test_a_rank_that_fails_on_the_second_node_is_named_and_nothing_is_left(
    hosts: slurm_lab.SlurmLab, tmp_path: Path, kind: str
) -> None:
    cluster = Cluster(Home(tmp_path / "home"), kind)
    code = "from mpi4py import MPI\nif rank == 3: raise ValueError('third')\nMPI.COMM_WORLD.Barrier()"
    ref = cluster.submit(code)
    ended = wait_for_end(cluster.backend, ref)
    assert ended.state is TrialState.FAILED
    assert "Rank 3" in ended.reason
    assert "third" in ended.reason
    wait_until(lambda: not left_on(hosts), "the processes' end on both hosts")


@pytest.mark.parametrize("kind", long_besides(["mpich"], KINDS))
def test_a_trial_of_mpi_is_cancelled_on_both_nodes(hosts: slurm_lab.SlurmLab, tmp_path: Path, kind: str) -> None:
    cluster = Cluster(Home(tmp_path / "home"), kind)
    ref = cluster.submit("from mpi4py import MPI\nimport time\nprint('begun', flush=True)\ntime.sleep(1000)")
    last = wire.stream_of_rank(wire.STDOUT, 3)
    wait_until(lambda: cluster.backend.poll([ref]) and "begun" in cluster.text(ref, last), "rank 3")
    assert cluster.backend.cancel(ref, 1.0).pids_left == ()
    assert cluster.backend.poll([ref])[0].state is TrialState.CANCELLED
    wait_until(lambda: not left_on(hosts), "the processes' end on both hosts")
