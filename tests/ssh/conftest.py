"""Three hosts with real OpenSSH servers, made once; every test runs in their network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_autotrain.testing import ssh_lab


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
    """The lab as new: linked, trusted, nothing running on its hosts."""
    the_lab.trust(the_lab.hosts)
    with the_lab.inside():
        yield the_lab
    for host in the_lab.hosts:
        host.heal()


@pytest.fixture
def host(lab: ssh_lab.SshLab) -> ssh_lab.LabHost:
    return lab.hosts[0]
