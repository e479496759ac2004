"""mpiexec over two hosts, without SSH between them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.testing.ssh_lab import SshLab
from tests.ssh.test_multi_node import Cluster

pytestmark = pytest.mark.fault


@pytest.mark.parametrize("kind", ["mpich", "openmpi"])
def test_mpi4py_reduces_over_ranks_on_two_hosts(lab: SshLab, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    python = Path(sys.prefix) / kind / "bin" / "python"
    if not (python.parent / "mpiexec").exists():
        pytest.skip(f"there is no {python.parent}/mpiexec: sh .ci/mpi makes it")
    cluster = Cluster(lab, Home(tmp_path / "home"), python=str(python))
    code = """
        from mpi4py import MPI
        import os, socket
        world = MPI.COMM_WORLD
        report(total=float(world.allreduce(rank + 1)))
        report(all_ranks=True, mean=float(rank))
        print(socket.gethostname(), rank, world_size, os.environ["LOCAL_RANK"], os.environ["JUPYTER_AUTOTRAIN_TRIAL"])
    """
    try:
        ref = cluster.submit(code, launcher="mpi", workers=2)
        end = cluster.finish(ref)
        assert (end.state, end.reason) == (TrialState.SUCCEEDED, ""), cluster.text(ref, wire.LAUNCHER_LOG)
        shown = [cluster.text(ref, wire.stream_of_rank(wire.STDOUT, rank)) for rank in range(4)]
        words = [text.split()[:4] for text in shown]
        assert words == [[f"h{1 + k // 2}", str(k), "4", str(k % 2)] for k in range(4)]
        assert '{"total":10.0}' in cluster.text(ref, wire.METRICS)
        assert '{"mean": 1.5}' in cluster.text(ref, wire.METRICS)
        cluster.assert_nothing_runs()
    finally:
        cluster.backend.close()
