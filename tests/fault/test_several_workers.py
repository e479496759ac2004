"""A trial of several workers (ranks) on one node: they start together, fail together and end together."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import signal
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from jupyter_autotrain.testing.bundles import write_bundle
from tests.fault.several_workers import WAITS, Running

pytestmark = pytest.mark.fault


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_three_workers_run_with_the_variables_of_torchrun_and_files_of_their_own(home: Home) -> None:
    code = """
        import os, sys
        names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"]
        print(*[os.environ[name] for name in names], rank, world_size)
        print("err of", rank, file=sys.stderr)
        report(step=rank, loss=float(rank))
    """
    running = Running(home, code, 3)
    end = running.finish()
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, "")
    shown = [running.printed(wire.STDOUT, rank) for rank in range(3)]
    ports = {line.split()[6] for line in shown}
    assert len(ports) == 1
    port = ports.pop()
    assert shown == [f"{rank} {rank} 3 3 0 127.0.0.1 {port} {rank} 3\n" for rank in range(3)]
    assert [running.printed(wire.STDERR, rank) for rank in range(3)] == [f"err of {rank}\n" for rank in range(3)]
    for rank in range(3):
        frames = [json.loads(line) for line in running.printed(wire.METRICS, rank).splitlines()]
        assert [(frame[1], frame[3]) for frame in frames if frame[0] == "m"] == [(rank, {"loss": float(rank)})]
    rows = end.detail["workers"]
    assert [(row["rank"], row["exit_code"], row["signal"]) for row in rows] == [(k, 0, None) for k in range(3)]
    assert end.detail["worker"] == rows[0]["process"]


def test_one_worker_has_none_of_this(home: Home) -> None:
    code = "import os\nprint([name for name in os.environ if name.endswith(('RANK', 'WORLD_SIZE', 'MASTER_PORT'))])"
    running = Running(home, code, 1)
    end = running.finish()
    assert running.printed(wire.STDOUT, 0) == "[]\n"
    assert "workers" not in end.detail


def test_only_rank_0_has_to_report_the_objective_and_brings_back_what_it_returns(home: Home) -> None:
    code = "if rank == 0: report(loss=1.0)\nwho = rank"
    running = Running(home, code, 2, objective="loss", returns=("who",))
    assert running.finish().state is TrialState.SUCCEEDED
    saved = (running.directory / wire.OUTPUTS / "who.pkl").read_bytes()
    assert pickle.loads(saved) == 0


def test_the_first_rank_that_fails_is_named_with_its_error_and_the_others_are_ended(home: Home) -> None:
    waits = WAITS.replace("while True:", "while rank != 1 or not all(map(has_begun, ['stdout', 'stdout-2'])):")
    code = f"""
import pathlib
def has_begun(stream):
    file = pathlib.Path("..", stream)
    return file.exists() and "begun" in file.read_text()

{waits}
raise ValueError('bad batch')
"""
    running = Running(home, code, 3)
    end = running.finish()
    assert end.state is TrialState.FAILED
    assert end.reason.startswith("Rank 1 failed: ValueError: bad batch.")
    assert end.detail["kind"] == "exception"
    assert "raise ValueError" in str(end.detail["cell_line"])
    assert "ValueError: bad batch" in running.printed(wire.STDERR, 1)
    assert end.detail["exit_code"] == 1
    assert [row["signal"] for row in end.detail["workers"]] == [15, None, 15]
    running.assert_nothing_left()


def test_a_rank_that_exits_without_an_outcome_is_named_with_the_last_line_of_its_stderr(home: Home) -> None:
    code = f"""{WAITS.replace("while True:", "while rank != 2:")}
import sys
print("libfoo: no license", file=sys.stderr, flush=True)
os._exit(4)
"""
    end = Running(home, code, 3).finish()
    assert end.reason.startswith("Rank 2 failed: The worker ended with exit code 4")
    assert "libfoo: no license" in end.reason


def test_a_killed_rank_ends_the_trial(home: Home) -> None:
    running = Running(home, WAITS, 3)
    running.begun()
    os.kill(running.pid(2), signal.SIGKILL)
    end = running.finish()
    assert end.state is TrialState.FAILED
    assert end.reason.startswith("Rank 2 failed: Killed by signal 9 (SIGKILL).")
    assert end.detail["signal"] == 9
    running.assert_nothing_left()


def test_a_killed_supervisor_takes_all_ranks_along_and_the_trial_is_lost(home: Home) -> None:
    running = Running(home, WAITS, 3)
    running.begun()
    detail = running.status().detail
    workers = [ProcessIdentity.from_json(row["process"]) for row in detail["workers"]]
    os.kill(int(detail["supervisor"][0]), signal.SIGKILL)
    end = running.finish()
    assert end.state is TrialState.LOST
    wait_until(lambda: not any(worker.is_alive() for worker in workers), "the end of all ranks")
    running.assert_nothing_left()


def test_cancel_ends_all_ranks_and_their_children(home: Home) -> None:
    running = Running(home, WAITS, 3)
    running.begun()
    pids = {running.pid(rank) for rank in range(3)}
    receipt = running.backend.cancel(running.ref, 2.0)
    assert receipt.pids_left == ()
    assert pids <= {*receipt.pids_ended, *receipt.pids_killed}
    assert running.status().state is TrialState.CANCELLED
    running.assert_nothing_left()


def test_a_time_limit_ends_all_ranks(home: Home) -> None:
    running = Running(home, WAITS, 2, timeout_s=3.0)
    end = running.finish()
    assert end.state is TrialState.FAILED
    assert end.reason.startswith("Timeout")


def test_the_memory_limit_holds_for_all_ranks_together(home: Home) -> None:
    code = "print('begun', flush=True)\nimport time\nheld = bytearray(150_000_000)\nwhile True: time.sleep(0.01)"
    running = Running(home, code, 2, resources={"memory_bytes": 250_000_000})
    end = running.finish()
    assert end.state is TrialState.FAILED
    assert "Out of memory" in end.reason


def test_a_stop_request_reaches_all_ranks(home: Home) -> None:
    code = "import time\nprint('begun', flush=True)\nwhile not should_stop(): time.sleep(0.01)"
    running = Running(home, code, 2)
    running.begun()
    running.backend.put(running.ref, wire.STOP_FILE, b"Enough.")
    end = running.finish()
    assert (end.state, end.reason) == (TrialState.EARLY_STOPPED, "Enough.")


def test_shipped_files_reach_all_ranks_that_start_at_once(home: Home) -> None:
    files = {f"data/{k}.txt": str(k) for k in range(50)} | {"helper.py": "WORD = 'beside'"}
    code = "import helper\nfrom pathlib import Path\nprint(helper.WORD, len(list(Path('data').iterdir())))"
    write_bundle(home.bundle("e1"), code, files=files)
    running = Running(home, "", 4)
    assert running.finish().state is TrialState.SUCCEEDED, running.status().reason
    assert {running.printed(wire.STDOUT, rank) for rank in range(4)} == {"beside 50\n"}


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.long  # ranks of tests/parallel and of journeys/test_plans_are_measured.py reduce, too
def test_torch_reduces_over_two_ranks(home: Home) -> None:
    code = """
        import torch
        import torch.distributed as dist
        dist.init_process_group("gloo")
        total = torch.tensor([float(rank + 1)])
        dist.all_reduce(total)
        report(total=total)
        dist.destroy_process_group()
    """
    running = Running(home, code, 2)
    end = running.finish()
    assert end.state is TrialState.SUCCEEDED, (end.reason, running.printed(wire.STDERR, 1))
    for rank in range(2):
        assert '{"total":3.0}' in running.printed(wire.METRICS, rank)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_the_rank_that_fails_is_named_and_not_the_one_that_waits_for_it(home: Home) -> None:
    code = """
        import torch
        import torch.distributed as dist
        dist.init_process_group("gloo")
        if rank == 1:
            raise ValueError("bad shard")
        dist.all_reduce(torch.zeros(1))
    """
    end = Running(home, code, 2).finish()
    assert end.reason.startswith("Rank 1 failed: ValueError: bad shard.")


def test_values_of_all_ranks_become_one_and_a_stop_comes_to_all_at_the_same_call(home: Home) -> None:
    code = """
        import time
        step = 0
        while not should_stop():
            report(step=step, all_ranks=True, loss=float(rank))
            report(step=step, all_ranks="sum", seen=1)
            step += 1
            time.sleep(0.01 if rank else 0.003)
        print("begun", step, flush=True)
    """
    running = Running(home, code, 3, objective="loss")
    wait_until(lambda: '{"loss": 1.0}' in running.printed(wire.METRICS, 0), "a mean")
    running.backend.put(running.ref, wire.STOP_FILE, b"Enough.")
    end = running.finish()
    assert (end.state, end.reason) == (TrialState.EARLY_STOPPED, "Enough.")
    steps = {running.printed(wire.STDOUT, rank) for rank in range(3)}
    assert len(steps) == 1, steps
    count = int(steps.pop().split()[1])
    frames = [json.loads(line) for line in running.printed(wire.METRICS, 0).splitlines()]
    means = {frame[1]: frame[3]["loss"] for frame in frames if frame[0] == "m" and "loss" in frame[3]}
    sums = [frame[3]["seen"] for frame in frames if frame[0] == "m" and "seen" in frame[3]]
    assert means == dict.fromkeys(range(count), 1.0)
    assert sums == [3] * count
