"""One contract for both transports, over real servers."""

from __future__ import annotations

import contextlib
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from abc import ABC
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from jupyter_autotrain.backends.ssh import agent_connection, host_keys, openssh_transport
from jupyter_autotrain.backends.ssh.address import HostAddress, TransportKind
from jupyter_autotrain.backends.ssh.host import resolve
from jupyter_autotrain.backends.ssh.transport import HostKeyError, Transport, run, start
from jupyter_autotrain.backends.transfer.channels import LinkLostError
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, MissingExtraError
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import LabHost, SshLab
from tests.ssh.after_a_fault import is_told, nothing_runs_on

ECHO = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"


def script(host: LabHost, code: str) -> list[str]:
    return [sys.executable, "-I", "-S", host.write("/scratch/script.py", code)]


class TransportContract(ABC):
    kind: TransportKind

    def address(self, lab: SshLab, name: str = "h1", **options: object) -> HostAddress:
        return HostAddress(name, config_file=str(lab.config), **options)  # type: ignore[arg-type]

    @pytest.fixture(autouse=True)
    def library(self) -> None:
        if self.kind is TransportKind.PARAMIKO:
            pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")

    @pytest.fixture
    def transport(self, lab: SshLab) -> Iterator[Transport]:
        made = agent_connection.connect(self.address(lab), self.kind)
        yield made
        made.close()

    def test_a_command_gives_its_output_its_errors_and_its_exit_code(self, transport: Transport, host: LabHost) -> None:
        code = "import sys\nprint(sys.stdin.read())\nprint('warned', file=sys.stderr)\nsys.exit(7)"
        result = run(transport, script(host, code), "h1", b"sent")
        assert (result.exit_code, result.stdout, result.stderr) == (7, b"sent\n", b"warned\n")

    def test_it_runs_on_the_host(self, transport: Transport) -> None:
        assert run(transport, ["hostname"], "h1").stdout == b"h1\n"

    def test_a_channel_speaks_both_ways_for_long(self, transport: Transport, host: LabHost) -> None:
        channel = start(transport, script(host, ECHO), "h1")
        for word in (b"one\n", b"two\n", b"three\n"):
            channel.send(word)
            assert channel.receive() == word.upper()
        channel.finish()
        assert channel.receive() == b""
        assert channel.exit_code() == 0
        channel.close()

    def test_binary_megabytes_go_both_ways_unchanged(self, transport: Transport) -> None:
        data = bytes(range(256)) * 20_000
        channel = start(transport, ["cat"], "h1")
        sender = threading.Thread(target=lambda: (channel.send(data), channel.finish()))
        sender.start()
        pieces = []
        while piece := channel.receive():
            pieces.append(piece)
        sender.join()
        channel.close()
        assert b"".join(pieces) == data

    @pytest.mark.parametrize("user", ["printing", "slow", "fish"])
    def test_a_login_shell_may_print_be_slow_or_be_fish(self, lab: SshLab, host: LabHost, user: str) -> None:
        if not host.home(user).exists():
            pytest.skip(f"there is no shell for the account {user} on this machine")
        transport = agent_connection.connect(self.address(lab, user=user), self.kind)
        try:
            result = run(transport, ["pwd"], "h1")
        finally:
            transport.close()
        assert (result.stdout.decode().strip(), result.exit_code) == (host.files.home(user), 0)
        assert b"Quota" not in result.stderr

    def test_a_login_shell_that_ends_first_is_named(self, lab: SshLab, host: LabHost) -> None:
        start_up = host.home("printing") / ".bashrc"
        before = start_up.read_text()
        start_up.write_text("echo 'This account is closed.'; exit 3\n")
        transport = agent_connection.connect(self.address(lab, user="printing"), self.kind)
        try:
            with pytest.raises(BackendError) as caught:
                run(transport, ["pwd"], "h1")
            is_told(caught.value, "login shell of h1", "This account is closed")
        finally:
            transport.close()
            start_up.write_text(before)

    def test_more_commands_at_once_than_the_server_has_sessions_all_run(
        self, lab: SshLab, transport: Transport
    ) -> None:
        results: list[bytes] = []

        def one(number: int) -> None:
            results.append(run(transport, ["sh", "-c", f"sleep 0.2; echo {number}"], "h1").stdout)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(15)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(int(result) for result in results) == list(range(15))
        wait_until(lambda: not any("sleep" in args for args in lab.hosts[0].commands().values()), "their ends")

    def test_a_cut_link_is_noticed_within_seconds_and_can_be_made_again(
        self, lab: SshLab, host: LabHost, transport: Transport
    ) -> None:
        channel = start(transport, ["cat"], "h1")
        channel.send(b"x")
        assert channel.receive() == b"x"
        host.cut()
        begun_s = time.monotonic()
        with pytest.raises(LinkLostError, match="h1 does not answer"):
            channel.receive()
        took_s = time.monotonic() - begun_s
        channel.close()
        assert took_s < 120  # 5 s on a machine that is not busy
        with pytest.raises(LinkLostError):
            run(transport, ["true"], "h1")
        host.heal()
        again = self.connect_again(lab)
        assert run(again, ["hostname"], "h1").stdout == b"h1\n"
        again.close()

    def connect_again(self, lab: SshLab) -> Transport:
        def connected() -> Transport | None:
            with contextlib.suppress(BackendUnavailableError):
                return agent_connection.connect(self.address(lab), self.kind)
            return None

        return wait_until(connected, "the connection after healing")

    def test_an_unknown_host_is_refused_with_its_fingerprint(self, lab: SshLab, host: LabHost) -> None:
        lab.trust(lab.hosts[1:])
        shown = self.fingerprint(host)
        with pytest.raises(HostKeyError) as caught:
            agent_connection.connect(self.address(lab), self.kind)
        is_told(caught.value, shown)
        nothing_runs_on(host)
        assert "not known" in caught.value.found
        assert "ssh h1" in caught.value.action

    def fingerprint(self, host: LabHost) -> str:
        argv = ["ssh-keygen", "-l", "-f", str(host.server / "host_key.pub")]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()[1]

    def test_a_host_is_trusted_by_its_fingerprint_and_by_no_other(self, lab: SshLab, host: LabHost) -> None:
        lab.trust(lab.hosts[1:])
        address = self.address(lab)
        key = agent_connection.host_key(address, self.kind)
        with pytest.raises(HostKeyError, match="Nothing was trusted"):
            host_keys.trust(resolve(address), key, "SHA256:another")
        host_keys.trust(resolve(address), key, self.fingerprint(host))
        transport = agent_connection.connect(address, self.kind)
        transport.close()

    def test_a_key_that_is_known_for_the_host_is_known_on_its_other_ports(
        self, lab: SshLab, host: LabHost, tmp_path: Path
    ) -> None:
        host.start_server("other", "", "-p", "2023")
        address = HostAddress("h1", port=2023, config_file=str(lab.config))
        agent_connection.connect(address, self.kind).close()

    def test_a_changed_key_is_refused(self, lab: SshLab) -> None:
        first, second, *_ = lab.hosts
        lab.known_hosts.write_text(f"{first.address} {second.public_key}\n")
        with pytest.raises(HostKeyError) as caught:
            agent_connection.connect(self.address(lab), self.kind)
        is_told(caught.value, "has changed")
        nothing_runs_on(first)
        (forget,) = re.findall("`(.*)`", caught.value.action)
        subprocess.run(shlex.split(forget), check=True, capture_output=True)
        assert first.address not in lab.known_hosts.read_text()

    def test_a_key_that_the_host_does_not_accept_is_named(self, lab: SshLab, tmp_path: Path) -> None:
        other = tmp_path / "other_key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
        config = tmp_path / "config"
        config.write_text(lab.config.read_text().replace(str(lab.folder / "user_key"), str(other)))
        with pytest.raises(BackendUnavailableError, match="does not let"):
            agent_connection.connect(HostAddress("h1", config_file=str(config)), self.kind)

    def test_a_host_that_is_not_there_is_named(self, lab: SshLab, tmp_path: Path) -> None:
        config = tmp_path / "config"
        config.write_text(f"Host gone\n  HostName {lab.hosts[0].address}\n  Port 2222\n  User root\n")
        with pytest.raises(BackendUnavailableError, match="gone cannot be reached"):
            agent_connection.connect(HostAddress("gone", config_file=str(config)), self.kind)

    def test_a_host_behind_another_is_reached_through_it(self, lab: SshLab, tmp_path: Path) -> None:
        config = tmp_path / "config"
        own = lab.config.read_text()
        config.write_text("Host h2\n  ProxyJump h1\n" + own)
        transport = agent_connection.connect(HostAddress("h2", config_file=str(config)), self.kind)
        try:
            peer = run(transport, ["sh", "-c", "echo $SSH_CONNECTION"], "h2").stdout.split()[0]
        finally:
            transport.close()
        assert peer.decode() == lab.hosts[0].address

    def test_included_configurations_are_read(self, lab: SshLab, tmp_path: Path) -> None:
        config = tmp_path / "config"
        config.write_text(f"Include {lab.config}\nHost *\n  ServerAliveInterval 7\n")
        transport = agent_connection.connect(HostAddress("h3", config_file=str(config)), self.kind)
        assert run(transport, ["hostname"], "h3").stdout == b"h3\n"
        transport.close()


class TestParamiko(TransportContract):
    kind = TransportKind.PARAMIKO

    def test_small_packets_do_not_wait_for_acknowledgements(self, transport: Transport) -> None:
        sock = transport._connection().sock  # type: ignore[attr-defined]
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    def test_without_paramiko_the_error_is_the_line_that_installs_it(
        self, lab: SshLab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "paramiko", None)
        monkeypatch.delitem(sys.modules, "jupyter_autotrain.backends.ssh.paramiko_transport", raising=False)
        monkeypatch.delitem(sys.modules, "jupyter_autotrain.backends.ssh.paramiko_connecting", raising=False)
        with pytest.raises(MissingExtraError, match=r"pip install 'jupyter-autotrain\[ssh\]'"):
            agent_connection.connect(self.address(lab), self.kind)


class TestOpenSsh(TransportContract):
    kind = TransportKind.OPENSSH

    def test_a_program_that_never_connects_is_given_up(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        program = tmp_path / "ssh"
        program.write_text('#!/bin/sh\ncase "$*" in *"-O check"*) exit 1;; esac\nexec sleep 60\n')
        program.chmod(0o700)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        monkeypatch.setattr(openssh_transport, "_MASTER_S", 0.2)
        with pytest.raises(BackendUnavailableError, match="h1 has not let you in within 0 s"):
            agent_connection.connect(HostAddress("h1"), self.kind)

    def test_a_closed_connection_leaves_no_process(self, lab: SshLab) -> None:
        transport = agent_connection.connect(self.address(lab), self.kind)
        folder = str(transport._folder)  # type: ignore[attr-defined]
        assert self.processes_with(folder)
        transport.close()
        wait_until(lambda: not self.processes_with(folder), "the master's end")

    def processes_with(self, word: str) -> list[str]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                found.append(" ".join(process.cmdline()))
        return [line for line in found if word in line]
