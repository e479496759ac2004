"""The contract of all backends, by both transports, on real hosts."""

from __future__ import annotations

import sys

import pytest

from jupyter_autotrain.backends.ssh.address import TransportKind
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.testing import BackendContract
from tests.labs.ssh_lab import SshLab
from tests.ssh.lasting_links import LastingLinks


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


@pytest.mark.long
class TestOpenSsh(SshContract):
    kind = TransportKind.OPENSSH
