"""The supervisors of a trial's nodes, as processes of this machine and with no manager: values, stops, kills, ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import system, wire
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.service import starting, status_resolution
from jupyter_autotrain.agent.system import ports
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial.status import Status
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.testing import trial_file, trial_of, wait_until

pytestmark = pytest.mark.fault
WAITS = """
import time
print("begun", flush=True)
while not should_stop():
    time.sleep(0.01)
"""


class Nodes:
    """A trial on several nodes, each a supervisor with a folder of its own."""

    def __init__(self, root: Path, code: str, count: int = 2, workers: int = 1, **layout: object) -> None:
        home = Home(root)
        trial = trial_of(home, code, resources=Resources(nodes=count, workers_per_node=workers))
        self.content = {**trial_file(home, trial), "workers": workers}
        self.folders = [root / f"node-{node}" for node in range(count)]
        first = ["127.0.0.1", ports.find_free(1)[0]]
        self.layout = {"nodes": count, "first": first, "address": "127.0.0.1", "wait_s": 60, **layout}
        self.workers = workers

    def start(self, node: int, token: str = "of this trial") -> None:
        folder = self.folders[node]
        for name in wire.FOLDERS:
            (folder / name).mkdir(parents=True)
        content = {**self.content, "directory": str(folder), "layout": {**self.layout, "node_rank": node}}
        (folder / wire.TRIAL_FILE).write_text(json.dumps(content))
        argv = (sys.executable, *system.INTERPRETER_FLAGS, *program("supervisor"), str(folder))
        starting.start(argv, {**os.environ, wire.TOKEN_VARIABLE: token}, folder)

    def status(self, node: int) -> Status:
        return statuses.read(self.folders[node]) or {}

    def text(self, rank: int, stream: str = wire.STDOUT) -> str:
        path = self.folders[rank // self.workers] / wire.stream_of_rank(stream, rank)
        return path.read_text() if path.exists() else ""

    def begun(self) -> None:
        ranks = range(self.workers * len(self.folders))
        wait_until(lambda: all("begun" in self.text(rank) for rank in ranks), "all ranks")

    def ends(self) -> list[tuple[object, object]]:
        """Wait for the ends of all nodes; return their states and reasons."""
        for node in range(len(self.folders)):
            wait_until(lambda node=node: statuses.is_final(self.status(node)), f"the end of node {node}")
        return [(self.status(node)["state"], self.status(node)["reason"]) for node in range(len(self.folders))]

    def means(self) -> list[tuple[int, float]]:
        frames = [json.loads(line) for line in self.text(0, wire.METRICS).splitlines()]
        return [(frame[1], frame[3]["loss"]) for frame in frames if frame[0] == "m" and "loss" in frame[3]]

    def kill(self, node: int) -> None:
        pid = status_resolution.identity(self.folders[node], self.status(node)).pid  # type: ignore[union-attr]
        os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        for folder in self.folders:
            if folder.exists():
                status_resolution.end_tree(folder, {}, 0.0)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Nodes]]:
    made: list[Nodes] = []

    def make(code: str, **options: object) -> Nodes:
        made.append(Nodes(tmp_path, code, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.end()


def test_values_of_all_ranks_become_one_and_no_rank_knows_the_token(make: Callable[..., Nodes]) -> None:
    code = """
        import os
        for step in range(50):
            report(step=step, all_ranks=True, loss=float(rank))
        print("of this trial" in repr(dict(os.environ)))
    """
    trial = make(code, workers=2)
    for node in (1, 0):
        trial.start(node)
    assert trial.ends() == [("SUCCEEDED", "")] * 2
    assert trial.means() == [(step, 1.5) for step in range(50)]
    assert [trial.text(rank) for rank in range(4)] == ["False\n"] * 4
    assert not (trial.folders[0] / wire.TRIAL_FILE).exists()


def test_a_stop_at_one_node_ends_all_at_the_same_call(make: Callable[..., Nodes]) -> None:
    code = """
        import time
        step = 0
        print("begun", flush=True)
        while not should_stop():
            time.sleep(0.03 if rank else 0.003)
            step += 1
        print("left", step, flush=True)
    """
    trial = make(code)
    for node in (0, 1):
        trial.start(node)
    trial.begun()
    (trial.folders[1] / wire.STOP_FILE).write_text("Enough.")
    assert trial.ends() == [("EARLY_STOPPED", "Enough.")] * 2
    assert trial.text(0) == trial.text(1)


def test_a_node_whose_ranks_end_early_waits_for_the_values_of_the_others(make: Callable[..., Nodes]) -> None:
    code = """
        import os, time
        report(step=0, all_ranks=True, loss=float(rank))
        print("begun", flush=True)
        while rank and not os.path.exists("enough"):
            time.sleep(0.01)
        if rank:
            report(step=1, all_ranks=True, loss=3.0)
    """
    trial = make(code)
    for node in (0, 1):
        trial.start(node)
    trial.begun()
    (trial.folders[1] / wire.WORK / "enough").touch()
    assert trial.ends() == [("SUCCEEDED", "")] * 2
    assert trial.means() == [(0, 0.5), (1, 3.0)]


@pytest.mark.parametrize("killed", [0, 1])
def test_a_supervisor_that_is_killed_ends_the_others_at_once(make: Callable[..., Nodes], killed: int) -> None:
    trial = make(WAITS, count=3)
    for node in range(3):
        trial.start(node)
    trial.begun()
    trial.kill(killed)
    others = [node for node in range(3) if node != killed]
    for node in others:
        wait_until(lambda node=node: statuses.is_final(trial.status(node)), f"the end of node {node}")
    reason = f"Ended because the trial has ended on node {killed}: it is lost."
    assert {trial.status(node)["reason"] for node in others} == {reason}


def test_a_rank_that_fails_ends_the_other_nodes_with_its_reason(make: Callable[..., Nodes]) -> None:
    trial = make(WAITS.replace("should_stop()", "rank == 1") + "raise ValueError('bad shard')\n", count=3)
    for node in range(3):
        trial.start(node)
    ends = trial.ends()
    assert ends[1][0] == "FAILED"
    assert str(ends[1][1]).startswith("Rank 1 failed: ValueError: bad shard")
    for node in (0, 2):
        assert ends[node] == ("CANCELLED", f"Ended because the trial has ended on node 1: {ends[1][1]}")


def test_nodes_that_do_not_meet_say_what_they_expected_and_start_nothing(make: Callable[..., Nodes]) -> None:
    trial = make(WAITS, wait_s=1)
    trial.start(1)
    wait_until(lambda: statuses.is_final(trial.status(1)), "its end")
    assert trial.status(1)["state"] == "FAILED"
    reason = str(trial.status(1)["reason"])
    assert reason.startswith("Node 0 of the trial does not answer at 127.0.0.1, port ")
    assert "Let the nodes connect to each other's ports (a firewall?)" in reason
    assert trial.status(1)["worker"] is None
    assert not trial.text(1)


def test_a_node_that_waits_says_so_and_can_be_cancelled(make: Callable[..., Nodes]) -> None:
    trial = make(WAITS)
    trial.start(0)
    assert (trial.status(0)["state"], trial.status(0)["reason"]) == ("PREPARING", "waits for the other nodes")
    (trial.folders[0] / wire.CANCEL_FILE).write_text('{"grace_s": 1, "reason": "Cancelled on request."}')
    wait_until(lambda: statuses.is_final(trial.status(0)), "its end")
    assert trial.status(0)["state"] == "CANCELLED"


def test_a_node_with_another_token_stays_outside(make: Callable[..., Nodes]) -> None:
    trial = make(WAITS, wait_s=2)
    trial.start(0)
    trial.start(1, token="guessed")
    ends = trial.ends()
    assert [state for state, _ in ends] == ["FAILED", "FAILED"]
    assert "Only 1 of 2 nodes of the trial have come." in str(ends[0][1])
    assert not trial.text(0)


def test_a_port_that_another_program_has_is_told(make: Callable[..., Nodes]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        trial = make(WAITS, first=["127.0.0.1", taken.getsockname()[1]])
        trial.start(0)
        wait_until(lambda: statuses.is_final(trial.status(0)), "its end")
    assert "Node 0 cannot listen for the other nodes: Address already in use" in str(trial.status(0)["reason"])
