"""Tests that ranks on several hosts report together and stop as those of one host do."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.home import Home, home_identity
from jupyter_autotrain.core.spec import ExperimentSpec, Resources
from jupyter_autotrain.testing import wait_until, write_bundle
from tests.labs.ssh_lab import SshLab
from tests.ssh.served_home import ServedHome
from tests.ssh.test_multi_node import Cluster

pytestmark = pytest.mark.fault
REPORTS = """
for step in range({first}, {last}):
    report(step=step, all_ranks=True, loss=float(rank))
    report(step=step, all_ranks="sum", seen=1)
print("begun", flush=True)
"""
WAITS = """
import time
while not should_stop():
    time.sleep(0.01)
"""


@pytest.fixture
def cluster(lab: SshLab, tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    made = Cluster(lab, Home(tmp_path / "home"))
    yield made
    made.backend.close()


def reduced(cluster: Cluster, ref: JobRef, name: str) -> list[tuple[int, float]]:
    frames = [json.loads(line) for line in cluster.text(ref, wire.METRICS).splitlines()]
    return [(frame[1], frame[3][name]) for frame in frames if frame[0] == "m" and name in frame[3]]


def test_values_of_all_ranks_on_two_hosts_become_one_also_when_they_end_while_nobody_looks(cluster: Cluster) -> None:
    ref = cluster.submit(REPORTS.format(first=0, last=50), workers=2)
    cluster.begun(ref, 4)  # reads, but does not poll
    end = cluster.finish(ref)
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, "")
    assert reduced(cluster, ref, "loss") == [(step, 1.5) for step in range(50)]
    assert reduced(cluster, ref, "seen") == [(step, 4) for step in range(50)]
    assert '"n"' not in cluster.text(ref, wire.METRICS)


def test_values_of_all_ranks_are_whole_after_a_cut_link_and_with_other_managers(cluster: Cluster) -> None:
    ref = cluster.submit(REPORTS.format(first=0, last=20) + WAITS + REPORTS.format(first=20, last=40))
    cluster.begun(ref, 2)
    wait_until(lambda: cluster.status(ref) and len(reduced(cluster, ref, "seen")) == 20, "the first half")
    another_manager(cluster)
    cluster.lab.hosts[1].cut()
    wait_until(lambda: cluster.status(ref).unreachable, "the doubt")
    cluster.lab.hosts[1].heal()
    wait_until(lambda: not cluster.status(ref).doubt, "the link")
    cluster.backend.put(ref, wire.STOP_FILE, b"Enough.")
    another_manager(cluster)
    assert cluster.finish(ref).state is TrialState.EARLY_STOPPED
    wait_until(lambda: len(reduced(cluster, ref, "seen")) >= 40, "what the host pushes to the new manager")
    assert reduced(cluster, ref, "loss") == [(step, 0.5) for step in range(40)]
    assert reduced(cluster, ref, "seen") == [(step, 2) for step in range(40)]


def test_a_killed_manager_stores_each_value_of_all_ranks_once(served: ServedHome) -> None:
    code = f"""
        import os, time
        for step in range(60):
            while step == 30 and not os.path.exists({served.enough!r}):
                time.sleep(0.01)
            report(step=step, all_ranks=True, loss=float(rank))
    """
    bundle = write_bundle(served.home.bundle("e1"), code)
    choice = served.lab(("h1", "h2"))
    spec = ExperimentSpec("exp", bundle, backends=(choice,), resources=Resources(nodes=2))
    served.store.add_experiment("e1", spec, time.time())
    served.begin()
    wait_until(lambda: len(served.store.points("e1")) >= 10, "the first values")
    served.kill()
    served.begin()
    served.end()
    assert served.states() == [TrialState.SUCCEEDED]
    found = [(point.step, point.value) for point in served.store.points("e1")]
    assert found == [(step, 0.5) for step in range(60)]


def another_manager(cluster: Cluster) -> None:
    """All that the backend knows is lost."""
    cluster.backend.close()
    cluster.backend = SshBackend(cluster.profile, cluster.context)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.long
def test_a_stop_comes_to_all_ranks_on_two_hosts_at_the_same_step(cluster: Cluster) -> None:
    code = """
        import time
        import torch.distributed as dist
        dist.init_process_group("gloo")
        step = 0
        while not should_stop():
            step += 1
            time.sleep(0.01 if rank else 0.003)
            if step == 5:
                print("begun", flush=True)
        print("left at", step, flush=True)
        dist.destroy_process_group()
    """
    ref = cluster.submit(code, workers=2)
    cluster.begun(ref, 4)
    cluster.backend.put(ref, wire.STOP_FILE, b"Enough.")
    end = cluster.finish(ref)
    assert (end.state, end.reason) == (TrialState.EARLY_STOPPED, "Enough."), cluster.text(ref, "stderr-3")
    said = [cluster.text(ref, wire.stream_of_rank(wire.STDOUT, rank)) for rank in range(4)]
    assert len(set(said)) == 1, said
    assert "left at" in said[0]


def test_a_stop_comes_to_plain_ranks_on_two_hosts_at_the_same_step(cluster: Cluster) -> None:
    code = """
        import time
        step = 0
        while not should_stop():
            step += 1
            time.sleep(0.03 if rank else 0.003)
            if step == 5:
                print("begun", flush=True)
        print("left at", step, flush=True)
    """
    ref = cluster.submit(code, workers=2)
    cluster.begun(ref, 4)
    cluster.backend.put(ref, wire.STOP_FILE, b"Enough.")
    end = cluster.finish(ref)
    assert (end.state, end.reason) == (TrialState.EARLY_STOPPED, "Enough."), cluster.text(ref, "stderr-3")
    said = [cluster.text(ref, wire.stream_of_rank(wire.STDOUT, rank)) for rank in range(4)]
    assert len(set(said)) == 1, said
    assert "left at" in said[0]


STOPS = """
import time
step = 0
while not should_stop():
    report(step=step, all_ranks=True, loss=float(rank))
    step += 1
    time.sleep(0.05 if rank else 0.02)
print("left at", step, flush=True)
"""


def test_values_and_a_stop_arrive_on_all_hosts_while_no_manager_is_there(served: ServedHome, lab: SshLab) -> None:
    bundle = write_bundle(served.home.bundle("e1"), STOPS)
    spec = ExperimentSpec("exp", bundle, backends=(served.lab(("h1", "h2")),), resources=Resources(nodes=2))
    served.store.add_experiment("e1", spec, time.time())
    served.begin()
    wait_until(lambda: len(served.store.points("e1")) >= 10, "the first values")
    served.kill()
    stored = len(served.store.points("e1"))
    job = f".autotrain/jobs/{home_identity(served.home)}/e1-1-1"
    folders = [next(host.home().glob(f"{job}@*")) for host in lab.hosts[:2]]
    token = json.loads((folders[0] / wire.CONTROL / "endpoint").read_text())[-1].encode()
    metrics = folders[0] / wire.METRICS
    wait_until(lambda: metrics.read_text().count('{"loss": 0.5}') > stored + 10, "values with no manager")
    second = lab.hosts[1]
    there = f"{second.files.home(second.user)}/{folders[1].relative_to(second.home())}"
    second.write(f"{there}/{wire.STOP_FILE}", "Enough.")  # the manager was killed before it told the other host
    ends = [folder / wire.STATUS_FILE for folder in folders]
    wait_until(lambda: all("EARLY_STOPPED" in end.read_text() for end in ends), "the ends with no manager")
    said = [(folders[0] / wire.STDOUT).read_text(), (folders[1] / f"{wire.STDOUT}-1").read_text()]
    assert said[0] == said[1]
    count = int(said[0].split()[-1])
    assert metrics.read_text().count('{"loss": 0.5}') == count
    assert '"n"' not in metrics.read_text()
    served.begin()
    wait_until(lambda: served.store.experiment("e1").state.is_final, "the end")
    assert not [path for folder in (served.home.root, *folders) for path in folder.rglob("*") if holds(path, token)]
    assert served.states() == [TrialState.EARLY_STOPPED]
    assert [(point.step, point.value) for point in served.store.points("e1")] == [(step, 0.5) for step in range(count)]


def holds(path: Path, word: bytes) -> bool:
    """Return whether a file holds a word; one that has just been removed holds none."""
    with contextlib.suppress(FileNotFoundError):
        return path.is_file() and word in path.read_bytes()
    return False


def test_a_link_between_the_hosts_that_is_cut_for_a_while_loses_nothing(cluster: Cluster) -> None:
    first, second, _ = cluster.lab.hosts
    ref = cluster.submit(STOPS)
    wait_until(lambda: len(reduced(cluster, ref, "loss")) > 5, "the first values")
    first.run("ip", "route", "add", "blackhole", second.address)
    try:
        wait_until(lambda: '"loss":1.0' in cluster.text(ref, "metrics-1"), "the other host goes on")
        before = len(reduced(cluster, ref, "loss"))
        others = cluster.text(ref, "metrics-1").count('"r"')
        wait_until(lambda: cluster.text(ref, "metrics-1").count('"r"') > others + 100, "reports behind the cut")
        assert len(reduced(cluster, ref, "loss")) < before + 50
        assert cluster.status(ref).state is TrialState.RUNNING
    finally:
        first.run("ip", "route", "del", "blackhole", second.address)
    wait_until(lambda: len(reduced(cluster, ref, "loss")) > before + 100, "the values")
    cluster.backend.put(ref, wire.STOP_FILE, b"Enough.")
    assert cluster.finish(ref).state is TrialState.EARLY_STOPPED
    steps = [step for step, value in reduced(cluster, ref, "loss") if value == 0.5]
    assert steps == list(range(len(steps)))
    assert {cluster.text(ref), cluster.text(ref, "stdout-1")} == {f"left at {len(steps)}\n"}


def test_hosts_that_do_not_reach_each_other_say_so(cluster: Cluster) -> None:
    first, second, _ = cluster.lab.hosts
    ref = None
    first.run("ip", "route", "add", "blackhole", second.address)
    try:
        ref = cluster.submit(STOPS)
        wait_until(lambda: "waits for the other nodes: " in cluster.status(ref).reason, "the words")
        assert cluster.status(ref).state is TrialState.PREPARING
        assert "nodes of the trial have come" in cluster.status(ref).reason
    finally:
        first.run("ip", "route", "del", "blackhole", second.address)
    wait_until(lambda: len(reduced(cluster, ref, "loss")) > 5, "values once they do")
    cluster.backend.cancel(ref, 0.0)
