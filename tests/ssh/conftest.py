"""Three hosts with real OpenSSH servers, made once; every test runs in their network."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.core.home import Home
from tests.labs import ssh_lab
from tests.labs.ssh_trials import LabBackends
from tests.ssh.lasting_links import LastingLinks
from tests.ssh.served_home import ServedHome


@pytest.fixture(scope="session")
def the_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ssh_lab.SshLab]:
    reason = ssh_lab.missing()
    if reason:
        pytest.skip(reason)
    lab = ssh_lab.SshLab(tmp_path_factory.mktemp("lab"), 3)
    yield lab
    lab.close()


@pytest.fixture
def lab(the_lab: ssh_lab.SshLab) -> Iterator[ssh_lab.SshLab]:
    """Yield the lab as new: linked, trusted, nothing running on its hosts."""
    the_lab.trust(the_lab.hosts)
    with the_lab.inside():
        yield the_lab
    for host in the_lab.hosts:
        host.heal()


@pytest.fixture
def host(lab: ssh_lab.SshLab) -> ssh_lab.LabHost:
    return lab.hosts[0]


@pytest.fixture
def scratch(host: ssh_lab.LabHost) -> str:
    """Return a path of the first host for a folder that is not there yet, on a disk where its user may make it."""
    return f"/scratch/{secrets.token_hex(8)}"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def make(lab: ssh_lab.SshLab) -> Iterator[LabBackends]:
    """Backends for hosts of the lab; at the end everything on the hosts is ended."""
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    made = LabBackends(lab)
    yield made
    made.close()
    for host in lab.hosts:
        host.clear()


@pytest.fixture
def served(tmp_path: Path, lab: ssh_lab.SshLab) -> Iterator[ServedHome]:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    made = ServedHome(tmp_path / "home", lab)
    yield made
    made.kill()
    made.store.close()
    for host in lab.hosts:
        host.clear()


@pytest.fixture(scope="module")
def links() -> Iterator[LastingLinks]:
    made = LastingLinks()
    yield made
    made.end()
