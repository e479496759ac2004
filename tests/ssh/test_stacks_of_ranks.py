"""The stacks of the ranks of a trial on two hosts, asked over the agents' channels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.client.debugging import ask_ranks
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import SshLab
from tests.ssh.test_multi_node import Cluster

CODE = """
import time
def waits_for_the_end():
    report(begun=1)
    while not should_stop():
        time.sleep(0.01)
waits_for_the_end()
"""


@pytest.fixture
def cluster(lab: SshLab, tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    made = Cluster(lab, Home(tmp_path / "home"))
    yield made
    made.backend.close()


def test_ranks_on_two_hosts_tell_where_they_stand_and_go_on(cluster: Cluster) -> None:
    ref = cluster.submit(CODE, workers=2)
    names = [wire.stream_of_rank(wire.METRICS, rank) for rank in range(4)]
    wait_until(lambda: all("begun" in cluster.text(ref, name) for name in names), "the ranks", within_s=120)
    for _ in range(2):
        found = ask_ranks(cluster.backend, ref, range(4), timeout_s=120)
        assert [(one.rank, one.fault) for one in found] == [(rank, "") for rank in range(4)]
        assert all("waits_for_the_end" in one.text for one in found)
    cluster.backend.put(ref, wire.STOP_FILE, b"Enough.")
    assert cluster.finish(ref).reason == "Enough."
