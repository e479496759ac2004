"""Trials on several nodes: one supervisor on each, started by `srun`."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.slurm.backend import SlurmBackend
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import trial_of, wait_for_end, wait_until
from tests.labs.slurm_lab import SlurmLab

TWO = Resources(cpus=2, nodes=2, workers_per_node=2)
RANKS = """
import os
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "SLURMD_NODENAME", "MASTER_ADDR", "MASTER_PORT")
print(*[os.environ[name] for name in names])
report(loss=float(os.environ["RANK"]))
for step in range(1, 20):
    report(step=step, all_ranks=True, mean=float(rank))
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def backend(cluster: SlurmLab, home: Home) -> SlurmBackend:
    return SlurmBackend(Profile("cluster", "slurm"), BackendContext(home))


def end(backend: SlurmBackend, ref: JobRef) -> JobStatus:
    return wait_for_end(backend, ref)


def read(backend: SlurmBackend, ref: JobRef, stream: str) -> bytes:
    return backend.read([Cursor(ref, stream, 0)])[0].data


def test_ranks_of_two_nodes_know_each_other(backend: SlurmBackend, home: Home) -> None:
    ref = backend.submit(trial_of(home, RANKS, resources=TWO), Placement(), {})
    ended = end(backend, ref)
    assert (ended.reason, ended.state) == ("", TrialState.SUCCEEDED)
    said = [read(backend, ref, wire.stream_of_rank(wire.STDOUT, rank)).split() for rank in range(4)]
    assert [words[:4] for words in said] == [
        [b"0", b"0", b"4", b"0"], [b"1", b"1", b"4", b"0"], [b"2", b"0", b"4", b"1"], [b"3", b"1", b"4", b"1"],
    ]  # fmt: skip
    assert {words[4] for words in said} == {b"n1", b"n2"}
    assert len({(words[5], words[6]) for words in said}) == 1
    frames = [json.loads(line) for line in read(backend, ref, wire.METRICS).splitlines()]
    means = [(frame[1], frame[3]["mean"]) for frame in frames if frame[0] == "m" and "mean" in frame[3]]
    assert means == [(step, 1.5) for step in range(1, 20)]


def test_a_trial_has_ended_only_when_its_last_node_has(backend: SlurmBackend, home: Home) -> None:
    code = "import os, time\nif os.environ['NODE_RANK'] == '1':\n    time.sleep(2)\n    print('last', flush=True)"
    ref = backend.submit(trial_of(home, code, resources=TWO), Placement(), {})
    assert end(backend, ref).state is TrialState.SUCCEEDED
    assert read(backend, ref, "stdout-3") == b"last\n"


def test_a_rank_that_fails_on_another_node_ends_the_trial_and_is_named(
    backend: SlurmBackend, home: Home, cluster: SlurmLab
) -> None:
    code = "import os, time\nif os.environ['RANK'] == '3': raise ValueError('third')\ntime.sleep(1000)"
    ref = backend.submit(trial_of(home, code, resources=TWO), Placement(), {})
    ended = end(backend, ref)
    assert ended.state is TrialState.FAILED
    assert "third" in ended.reason
    assert "Rank 3" in ended.reason
    wait_until(lambda: not any("start.py slurm_task" in line for line in cluster.commands()), "the processes' end")


@pytest.mark.parametrize("killed", [0, 1])
def test_a_supervisor_that_is_killed_loses_the_trial(
    backend: SlurmBackend, home: Home, cluster: SlurmLab, killed: int
) -> None:
    code = "import time\nprint('begun', flush=True)\ntime.sleep(1000)"
    ref = backend.submit(trial_of(home, code, resources=TWO), Placement(), {})
    streams = [wire.stream_of_rank(wire.STDOUT, rank) for rank in range(4)]
    wait_until(lambda: backend.poll([ref]) and all(b"begun" in read(backend, ref, one) for one in streams), "all ranks")
    directory = next(home.root.rglob("tasks")).read_text().strip()
    folder = Path(directory) / ("nodes/1" if killed else "")
    supervisor = json.loads((folder / wire.STATUS_FILE).read_text())["supervisor"]
    cluster.run("kill", "-KILL", str(supervisor[0]))
    ended = end(backend, ref)
    why = (
        "Lost: node 1: it is lost. " if killed else "Lost: its supervisor was killed from outside while the trial ran "
    )
    assert ended.state is TrialState.LOST
    assert ended.reason.startswith(why)
    wait_until(lambda: not any("start.py slurm_task" in line for line in cluster.commands()), "the processes' end")


def test_a_trial_whose_nodes_have_all_told_their_ends_does_not_wait_until_slurm_has_cleaned_up(
    backend: SlurmBackend, home: Home, cluster: SlurmLab
) -> None:
    code = """
        import os, time
        print("begun", flush=True)
        time.sleep(3 if rank == 3 else 1000)
        raise ValueError("third")
    """
    ref = backend.submit(trial_of(home, code, resources=TWO), Placement(), {})
    wait_until(lambda: backend.poll([ref]) and b"begun" in read(backend, ref, "stdout-3"), "rank 3")
    with cluster.stopped("n2"):  # so that its job completes for minutes
        ended = wait_for_end(backend, ref)
        assert "COMPLETING" in cluster.run("squeue", "--noheader", "-o", "%T")
    assert ended.state is TrialState.FAILED
    assert "Rank 3 failed: ValueError: third" in ended.reason


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_ranks_of_torchrun_follow_the_order_of_the_nodes(backend: SlurmBackend, home: Home) -> None:
    code = """
        import os, torch
        import torch.distributed as dist
        dist.init_process_group("gloo")
        total = torch.ones(1)
        dist.all_reduce(total)
        print(rank, os.environ["NODE_RANK"], os.environ["SLURM_NODEID"], total.item())
    """
    ref = backend.submit(trial_of(home, code, resources=TWO, launcher="torchrun"), Placement(), {})
    ended = end(backend, ref)
    assert ended.state is TrialState.SUCCEEDED, ended.reason
    said = [read(backend, ref, wire.stream_of_rank(wire.STDOUT, rank)).decode() for rank in range(4)]
    assert said == [f"{rank} {rank // 2} {rank // 2} 4.0\n" for rank in range(4)]


def test_a_trial_on_two_nodes_is_cancelled_on_both(backend: SlurmBackend, home: Home, cluster: SlurmLab) -> None:
    code = "import time\nprint('begun', flush=True)\ntime.sleep(1000)"
    ref = backend.submit(trial_of(home, code, resources=TWO), Placement(), {})
    wait_until(lambda: backend.poll([ref]) and b"begun" in read(backend, ref, "stdout-3"), "rank 3")
    receipt = backend.cancel(ref, 1.0)
    assert receipt.pids_left == ()
    assert backend.poll([ref])[0].state is TrialState.CANCELLED
    wait_until(lambda: not any("start.py slurm_task" in line for line in cluster.commands()), "the processes' end")


def test_a_stop_comes_to_plain_ranks_on_two_nodes_at_the_same_step(backend: SlurmBackend, home: Home) -> None:
    code = """
        import time
        step = 0
        print("begun", flush=True)
        while not should_stop():
            time.sleep(0.02 if rank < 2 else 0.005)
            step += 1
        print("left", step, flush=True)
    """
    ref = backend.submit(trial_of(home, code, resources=TWO), Placement(), {})
    streams = [wire.stream_of_rank(wire.STDOUT, rank) for rank in range(4)]

    def all_begun() -> bool:
        backend.poll([ref])
        return all(b"begun" in read(backend, ref, stream) for stream in streams)

    wait_until(all_begun, "all ranks")
    backend.put(ref, wire.STOP_FILE, b"Enough.")
    ended = end(backend, ref)
    assert (ended.state, ended.reason) == (TrialState.EARLY_STOPPED, "Enough.")
    left = {read(backend, ref, stream).splitlines()[-1] for stream in streams}
    assert len(left) == 1
    assert left.pop().startswith(b"left ")
