"""A session on a host: its cells, its variables and its files, over the agent's connection."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.sessions.handle import Session
from jupyter_autotrain.client.sessions.opening import SessionRequest, open_session
from tests.labs.ssh_lab import SshLab
from tests.sessions import assert_files_go_there, printed
from tests.ssh.served_home import ServedHome


@pytest.fixture
def session(served: ServedHome, lab: SshLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    profile = {"there": {"type": "ssh", "hosts": ["h1"], "config_file": str(lab.config), "python": sys.executable}}
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "backends.yaml").write_text(json.dumps(profile))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    opened = open_session(SessionRequest("lab", "there"), served.home, tmp_path, None, Dialogue(print, input))
    with Session(opened) as session:
        yield session
    opened.stop()


def test_it_keeps_its_state_and_outlives_the_manager_and_a_cut_of_the_link(
    session: Session, served: ServedHome, lab: SshLab, tmp_path: Path
) -> None:
    assert printed(session, "import os; count = 41; print(os.path.exists('/etc/hostname') or count)")
    session.push("given", {"number": 1})
    assert printed(session, "count += given['number']; print(count)") == "42\n"
    served.kill()
    lab.hosts[0].cut()
    lab.hosts[0].heal()
    assert printed(session, "print(count + 1)") == "43\n"
    assert session.pull("count") == 42
    assert_files_go_there(session, tmp_path)
    with Session(session.experiment) as other:  # as from another notebook
        assert printed(other, "print(count)") == "42\n"
    served.begin()
    session.close_session()
    assert session.experiment.state == "SUCCEEDED"
