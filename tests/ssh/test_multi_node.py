"""One trial on several hosts: started on all or none, watched as one, ended together."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import NodePlacement, Placement, Resources, TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError
from jupyter_autotrain.manager.artifact_sync import fetch_results
from jupyter_autotrain.testing import trial_of, wait_for_end, wait_until
from tests.labs.ssh_lab import SshLab

pytestmark = pytest.mark.fault
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
TWO = Placement((NodePlacement("h2"), NodePlacement("h1")))
WAITS = """
import os, time
print("begun", os.getpid(), flush=True)
while not should_stop():
    time.sleep(0.01)
"""


class Cluster:
    """A backend of the lab's hosts, and trials on it; `first` has options of the first host, the rest the profile's."""

    def __init__(self, lab: SshLab, home: Home, first: dict[str, object] | None = None, **options: object) -> None:
        self.lab = lab
        self.home = home
        hosts = [{"host": "h1", **(first or {})}, "h2", "h3"]
        self.profile = Profile(
            "lab", "ssh", {"hosts": hosts, "config_file": str(lab.config), "python": sys.executable, **options}
        )
        self.context = BackendContext(home)
        self.backend = SshBackend(self.profile, self.context)

    def trial(self, code: str, **spec: object) -> TrialSpec:
        resources = Resources(nodes=2, workers_per_node=spec.pop("workers", 1))
        return trial_of(self.home, code, resources=resources, **spec)

    def submit(self, code: str, **spec: object) -> JobRef:
        return self.backend.submit(self.trial(code, **spec), TWO, {})

    def status(self, ref: JobRef) -> JobStatus:
        return self.backend.poll([ref])[0]

    def finish(self, ref: JobRef) -> JobStatus:
        return wait_for_end(self.backend, ref)

    def text(self, ref: JobRef, stream: str = wire.STDOUT) -> str:
        data = b""
        while chunk := self.backend.read([Cursor(ref, stream, len(data))])[0].data:
            data += chunk
        return data.decode()

    def begun(self, ref: JobRef, ranks: int) -> None:
        streams = [wire.stream_of_rank(wire.STDOUT, rank) for rank in range(ranks)]
        wait_until(lambda: all("begun" in self.text(ref, stream) for stream in streams), "all ranks")

    def assert_nothing_runs(self) -> None:
        for host in self.lab.hosts[:2]:
            wait_until(lambda host=host: not _workers(host.commands()), f"nothing of a trial on {host.name}")


def _workers(commands: dict[int, str]) -> list[str]:
    return [args for args in commands.values() if "start.py worker" in args or "start.py supervisor" in args]


@pytest.fixture
def cluster(lab: SshLab, tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    made = Cluster(lab, Home(tmp_path / "home"))
    yield made
    made.backend.close()


def test_ranks_on_two_hosts_know_each_other_and_have_logs_of_their_own(cluster: Cluster) -> None:
    code = """
        import os, socket
        names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "MASTER_ADDR"]
        print(socket.gethostname(), *[os.environ[name] for name in names])
        report(loss=float(rank))
    """
    ref = cluster.submit(code, workers=2)
    end = cluster.finish(ref)
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, "")
    shown = [cluster.text(ref, wire.stream_of_rank(wire.STDOUT, rank)) for rank in range(4)]
    address = cluster.lab.hosts[0].address
    assert shown == [f"h{1 + k // 2} {k} {k % 2} 4 2 {k // 2} {k // 2} {address}\n" for k in range(4)]
    assert '{"loss":0.0}' in cluster.text(ref, wire.METRICS)
    assert '{"loss":3.0}' in cluster.text(ref, "metrics-3")
    assert [(row["rank"], row["node"]) for row in end.detail["workers"]] == [(k, f"h{1 + k // 2}") for k in range(4)]


@needs_torch
@pytest.mark.long  # as does torchrun on two hosts
def test_torch_reduces_over_two_hosts_at_the_address_that_they_reach(cluster: Cluster) -> None:
    code = """
        import torch
        import torch.distributed as dist
        dist.init_process_group("gloo")
        total = torch.tensor([float(rank + 1)])
        dist.all_reduce(total)
        report(total=total)
    """
    ref = cluster.submit(code)
    end = cluster.finish(ref)
    assert end.state is TrialState.SUCCEEDED, (end.reason, cluster.text(ref, "stderr-1"))
    assert '{"total":3.0}' in cluster.text(ref, wire.METRICS)


def test_the_rank_that_fails_is_named_with_its_host_and_the_others_end(cluster: Cluster) -> None:
    code = WAITS.replace("while not should_stop():", "while rank != 3:") + "raise ValueError('bad shard')\n"
    ref = cluster.submit(code, workers=2)
    end = cluster.finish(ref)
    assert end.state is TrialState.FAILED
    assert end.reason.startswith("Rank 3 on h2 failed: ValueError: bad shard.")
    assert end.detail["exit_code"] == 1
    assert "raise ValueError" in str(end.detail["cell_line"])
    cluster.assert_nothing_runs()


def test_a_cancel_and_a_stop_request_reach_all_hosts(cluster: Cluster) -> None:
    ref = cluster.submit(WAITS)
    cluster.begun(ref, 2)
    receipt = cluster.backend.cancel(ref, 1.0)
    assert receipt.pids_left == ()
    assert len({*receipt.pids_ended, *receipt.pids_killed}) >= 1
    assert cluster.status(ref).state is TrialState.CANCELLED
    cluster.assert_nothing_runs()
    ref = cluster.submit(WAITS, experiment_id="e2")
    cluster.begun(ref, 2)
    cluster.backend.put(ref, wire.STOP_FILE, b"Enough.")
    end = cluster.finish(ref)
    assert (end.state, end.reason) == (TrialState.EARLY_STOPPED, "Enough.")


def test_a_host_that_cannot_start_its_part_ends_the_others_and_leaves_nothing(cluster: Cluster) -> None:
    trial = cluster.trial(WAITS)
    host = cluster.lab.hosts[0]
    blocked = host.write(
        f"{host.files.home(host.user)}/.autotrain/jobs/{cluster.backend.job_name(f'{trial.job_id}@1')}",
        "a file where the trial directory should be",
    )
    try:
        with pytest.raises(BackendError, match="h1"):
            cluster.backend.submit(trial, TWO, {})
        cluster.assert_nothing_runs()
    finally:
        host.path(blocked).unlink()
    ref = cluster.backend.submit(trial, TWO, {})
    cluster.begun(ref, 2)
    cluster.backend.cancel(ref, 0.0)


def test_the_same_submission_again_finds_the_same_ranks(cluster: Cluster) -> None:
    trial = cluster.trial(WAITS)
    first = cluster.backend.submit(trial, TWO, {})
    again = cluster.backend.submit(trial, TWO, {})
    assert first == again
    cluster.begun(first, 2)
    assert cluster.text(first).count("begun") == 1
    cluster.backend.cancel(first, 0.0)


def test_a_cut_link_to_one_host_is_a_doubt_and_passes(cluster: Cluster) -> None:
    code = WAITS + "report(done=1)\n"
    ref = cluster.submit(code)
    cluster.begun(ref, 2)
    cluster.lab.hosts[1].cut()
    wait_until(lambda: cluster.status(ref).unreachable and "h2" in cluster.status(ref).doubt, "the doubt")
    cluster.lab.hosts[1].heal()
    wait_until(lambda: not cluster.status(ref).doubt, "the link")
    cluster.backend.put(ref, wire.STOP_FILE, b"Enough.")
    assert cluster.finish(ref).state is TrialState.EARLY_STOPPED


def test_of_two_hosts_the_one_that_is_cut_is_named_and_the_other_ends_its_part(cluster: Cluster) -> None:
    first, second, _ = cluster.lab.hosts
    ref = cluster.submit(WAITS, workers=2)
    cluster.begun(ref, 4)
    second.cut()
    wait_until(lambda: cluster.status(ref).unreachable_nodes == ("h2",), "the doubt")
    assert "h1" not in cluster.status(ref).doubt
    receipt = cluster.backend.cancel(ref, 1.0)
    assert receipt.unreachable_nodes == ("h2",)
    assert len({*receipt.pids_ended, *receipt.pids_killed}) == 2  # the ranks of h1
    assert receipt.pids_left == ()
    wait_until(lambda: not _workers(first.commands()), "nothing of the trial on h1")
    assert _workers(second.commands())
    second.heal()
    wait_until(lambda: not cluster.status(ref).doubt, "the link")
    again = cluster.backend.cancel(ref, 1.0)
    assert again.unreachable_nodes == ()
    assert cluster.status(ref).state is TrialState.CANCELLED
    cluster.assert_nothing_runs()


def test_a_cancel_that_no_host_answers_fails(cluster: Cluster) -> None:
    ref = cluster.submit(WAITS)
    cluster.begun(ref, 2)
    for host in cluster.lab.hosts[:2]:
        host.cut()
    silent = wait_until(lambda: ("h1" in cluster.status(ref).doubt) and cluster.status(ref), "the doubts")
    with pytest.raises(BackendUnavailableError, match=r"h[12] does not answer"):
        cluster.backend.cancel(ref, 1.0)
    assert silent.unreachable
    for host in cluster.lab.hosts[:2]:
        host.heal()
    wait_until(lambda: not cluster.status(ref).doubt, "the links")
    cluster.backend.cancel(ref, 0.0)
    cluster.assert_nothing_runs()


def test_a_host_that_is_silent_for_too_long_is_lost_and_its_partner_is_free(lab: SshLab, tmp_path: Path) -> None:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    cluster = Cluster(lab, Home(tmp_path / "home"), lost_after=9.0)
    ref = cluster.submit(WAITS)
    cluster.begun(ref, 2)
    lab.hosts[1].cut()
    end = cluster.finish(ref)
    assert end.state is TrialState.LOST
    assert end.reason == "On h2: Lost: h2 has not answered for 9.0 s (`lost_after` of its profile)."
    cluster.assert_nothing_runs()  # not on h2 either, where the trial has ended itself
    lab.hosts[1].heal()
    cluster.backend.close()


def test_what_the_other_host_has_of_a_lost_trial_comes_home(lab: SshLab, tmp_path: Path) -> None:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    cluster = Cluster(lab, Home(tmp_path / "home"), lost_after=9.0)
    ref = cluster.submit("import pathlib\npathlib.Path(f'of-{rank}').write_text('kept')" + WAITS)
    cluster.begun(ref, 2)
    lab.hosts[1].cut()
    end = cluster.finish(ref)
    try:
        fetch_results(cluster.backend, ref, tmp_path / "kept", end, 1_000_000)
        assert (tmp_path / "kept" / wire.WORK / "of-0").read_text() == "kept"
    finally:
        cluster.assert_nothing_runs()
        lab.hosts[1].heal()
        cluster.backend.close()


def test_a_rebooted_host_ends_the_trial_as_lost(cluster: Cluster) -> None:
    ref = cluster.submit(WAITS)
    cluster.begun(ref, 2)
    cluster.lab.hosts[1].reboot()
    end = cluster.finish(ref)
    assert end.state is TrialState.LOST
    assert end.reason.startswith("On h2: Lost: the machine was restarted")
    cluster.assert_nothing_runs()


@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_supervisor_loses_the_trial_and_the_other_host_ends_by_itself(cluster: Cluster, killed: int) -> None:
    ref = cluster.submit(WAITS, workers=2)
    cluster.begun(ref, 4)
    cluster.backend.close()  # nobody tells the other host
    hosts = cluster.lab.hosts[:2]
    (pid,) = [pid for pid, args in hosts[killed].commands().items() if "start.py supervisor" in args]
    hosts[killed].run("kill", "-KILL", str(pid))
    cluster.assert_nothing_runs()
    cluster.backend = SshBackend(cluster.profile, cluster.context)
    end = cluster.finish(ref)
    assert end.state is TrialState.LOST
    assert end.reason.startswith(f"On {hosts[killed].name}: Lost: its supervisor was killed from outside")


def test_an_address_of_the_profile_is_what_the_others_get(lab: SshLab, tmp_path: Path) -> None:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    cluster = Cluster(lab, Home(tmp_path / "home"), {"address": "h1-does-not-resolve.invalid"})
    with pytest.raises(BackendError, match=r"h1-does-not-resolve\.invalid"):
        cluster.submit(WAITS)
    cluster.backend.close()


def test_results_of_all_hosts_come_back(cluster: Cluster, tmp_path: Path) -> None:
    ref = cluster.submit("checkpoint.save(rank)\nwho = rank", returns=("who",))
    assert cluster.finish(ref).state is TrialState.SUCCEEDED
    target = tmp_path / "checkpoints"
    cluster.backend.fetch(ref, wire.CHECKPOINTS, str(target))
    found = sorted(str(path.relative_to(target)) for path in target.rglob("*.pkl"))
    assert found == ["rank-1/step-000000000000.pkl", "step-000000000000.pkl"]
    assert json.dumps(ref.data)
