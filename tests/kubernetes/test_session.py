"""A session in a pod: its cells, its variables and its files, over commands in the pod."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.sessions.handle import Session
from jupyter_autotrain.client.sessions.opening import SessionRequest, open_session
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import PODS
from tests.sessions import assert_files_go_there, printed


@pytest.fixture
def session(cluster: KubernetesLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    profile = {"there": {"type": "kubernetes", "kubeconfig": str(cluster.kubeconfig), "python": sys.executable}}
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "backends.yaml").write_text(json.dumps(profile))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    home = Home(tmp_path / "home")
    opened = open_session(SessionRequest("lab", "there"), home, tmp_path, None, Dialogue(print, input))
    with Session(opened) as session:
        yield session
    opened.stop()
    status = manager.status(home)
    if status.alive:
        os.kill(status.pid, signal.SIGKILL)


def test_it_keeps_its_state_in_its_pod_without_a_manager_until_it_is_closed(
    session: Session, cluster: KubernetesLab, tmp_path: Path
) -> None:
    assert printed(session, "count = 41; print(count)") == "41\n"
    home = session.experiment.home
    os.kill(manager.status(home).pid, signal.SIGKILL)
    wait_until(lambda: not manager.status(home).alive, "the manager's end")
    session.push("given", {"number": 1})
    assert printed(session, "count += given['number']; print(count)") == "42\n"
    assert session.pull("count") == 42
    assert_files_go_there(session, tmp_path)
    with Session(session.experiment) as other:  # as from another notebook
        assert printed(other, "print('x' * 3_000_000)") == "x" * 3_000_000 + "\n"
    manager.ensure(home)
    session.close_session()
    assert session.experiment.state == "SUCCEEDED"
    wait_until(lambda: not cluster.store.list(PODS, None)[0], "the end of the pod")
