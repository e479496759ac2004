"""The contract of all backends, by both transports, on real hosts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.transport_kind import TransportKind
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.testing import BackendContract
from jupyter_autotrain.testing.ssh_lab import SshLab


class LastingLinks:
    """Links that several backends use one after the other: a new connection for each test would double the time."""

    def __init__(self) -> None:
        self.made: dict[HostConfig, HostLink] = {}

    def __call__(self, config: HostConfig) -> HostLink:
        if config not in self.made:
            self.made[config] = LastingLink(config)
        return self.made[config]


class LastingLink(HostLink):
    def close(self) -> None:
        """The next backend goes on with it."""


@pytest.fixture(scope="module")
def links() -> Iterator[LastingLinks]:
    made = LastingLinks()
    yield made
    for link in made.made.values():
        HostLink.close(link)


class SshContract(BackendContract):
    kind: TransportKind

    @pytest.fixture(autouse=True)
    def hosts(self, lab: SshLab, links: LastingLinks) -> None:
        if self.kind is TransportKind.PARAMIKO:
            pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
        self.lab = lab
        self.links = links

    def make(self, context: BackendContext) -> Backend:
        options = {
            "hosts": ["h1"], "transport": str(self.kind), "config_file": str(self.lab.config), "python": sys.executable,
        }  # fmt: skip
        return SshBackend(Profile("lab", "ssh", options), context, self.links)

    def is_gone(self, pid: int) -> bool:
        return self.lab.hosts[0].is_gone(pid)


class TestParamiko(SshContract):
    kind = TransportKind.PARAMIKO


@pytest.mark.skipif(
    "AUTOTRAIN_LONG_TESTS" not in os.environ,
    reason="one transport does here; both run with AUTOTRAIN_LONG_TESTS=1, as in `make soak`",
)
class TestOpenSsh(SshContract):
    kind = TransportKind.OPENSSH
