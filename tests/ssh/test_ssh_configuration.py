"""Tests that the user's SSH configuration is followed: Match, agents, certificates, a master that is there already."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.ssh import agent_connection
from jupyter_autotrain.backends.ssh.address import HostAddress, TransportKind
from jupyter_autotrain.backends.ssh.transport import HostKeyError, run
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import BackendUnavailableError
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import LabHost, SshLab
from tests.labs.ssh_trials import COUNTS, LabBackends, end, start, status


@pytest.fixture(params=list(TransportKind))
def kind(request: pytest.FixtureRequest) -> TransportKind:
    if request.param is TransportKind.PARAMIKO:
        pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    kind: TransportKind = request.param
    return kind


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """Return a key that no host accepts."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    return tmp_path / "key"


@pytest.fixture
def config(lab: SshLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a configuration that names the hosts and no key; tests add lines at its beginning."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    lines = lab.config.read_text().splitlines(keepends=True)
    file = tmp_path / "config"
    file.write_text("".join(line for line in lines if "Identit" not in line))
    return file


def begin_with(config: Path, *lines: str) -> None:
    config.write_text("".join(f"{line}\n" for line in lines) + config.read_text())


def hostname_by(config: Path, kind: TransportKind, name: str = "h1") -> str:
    transport = agent_connection.connect(HostAddress(name, config_file=str(config)), kind)
    try:
        return run(transport, ["hostname"], name).stdout.decode().strip()
    finally:
        transport.close()


def test_match_blocks_apply_where_they_match_and_nowhere_else(lab: SshLab, config: Path, kind: TransportKind) -> None:
    begin_with(
        config,
        'Match originalhost box exec "true"', f"  HostName {lab.hosts[1].address}", f"  User {lab.hosts[1].user}",
        f"  IdentityFile {lab.folder / 'user_key'}", f"  UserKnownHostsFile {lab.known_hosts}",
        'Match originalhost box exec "false"', "  Port 1",
        "Match host other", "  Port 2",
        "Match all",
    )  # fmt: skip
    assert hostname_by(config, kind, "box") == "h2"


def test_a_command_for_logins_by_hand_is_in_nobodys_way(lab: SshLab, config: Path, kind: TransportKind) -> None:
    own = f"  IdentityFile {lab.folder / 'user_key'}"
    begin_with(config, "Host *", own, "  RemoteCommand tmux attach", "  RequestTTY force")
    assert hostname_by(config, kind) == "h1"


def test_a_revoked_key_is_refused_and_one_that_a_pattern_knows_is_not(
    lab: SshLab, config: Path, kind: TransportKind
) -> None:
    begin_with(config, "Host *", f"  IdentityFile {lab.folder / 'user_key'}")
    key = lab.hosts[0].public_key
    lab.known_hosts.write_text(f"@cert-authority *.lab {lab.hosts[1].public_key}\n10.77.0.1? {key}\n")
    assert hostname_by(config, kind) == "h1"
    lab.known_hosts.write_text(f"10.77.0.1? {key}\n@revoked * {key}\n")
    with pytest.raises(HostKeyError, match="h1 is revoked"):
        hostname_by(config, kind)


def test_the_agent_that_the_configuration_names_is_asked_for_keys(
    lab: SshLab, config: Path, kind: TransportKind, agent: Path
) -> None:
    with pytest.raises(BackendUnavailableError, match="does not let"):
        hostname_by(config, kind)
    begin_with(config, "Host *", f"  IdentityAgent {agent}")
    assert hostname_by(config, kind) == "h1"


@pytest.fixture
def agent(lab: SshLab, tmp_path: Path) -> Iterator[Path]:
    """Yield the socket of an agent that holds the user's key."""
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        add = ["ssh-add", "-q", str(lab.folder / "user_key")]
        env = {"SSH_AUTH_SOCK": str(socket), "PATH": "/usr/bin:/bin"}
        wait_until(lambda: subprocess.run(add, check=False, env=env).returncode == 0, "the agent")
        yield socket
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("names", ["the private key", "the public key"])
def test_a_named_key_that_only_the_agent_holds_lets_the_user_in(
    lab: SshLab, config: Path, kind: TransportKind, agent: Path, tmp_path: Path, names: str
) -> None:
    public = tmp_path / "only-the-agent-has-it.pub"
    public.write_text((lab.folder / "user_key.pub").read_text())
    named = public if names == "the public key" else public.with_suffix("")
    begin_with(config, "Host *", f"  IdentityAgent {agent}", f"  IdentityFile {named}", "  IdentitiesOnly yes")
    assert hostname_by(config, kind) == "h1"


def test_a_key_of_the_agent_that_is_not_named_is_not_used_where_only_named_ones_may_be(
    lab: SshLab, config: Path, kind: TransportKind, agent: Path, key: Path
) -> None:
    assert lab.hosts
    begin_with(config, "Host *", f"  IdentityAgent {agent}", f"  IdentityFile {key}", "  IdentitiesOnly yes")
    with pytest.raises(BackendUnavailableError, match="does not let"):
        hostname_by(config, kind)


def sign(lab: SshLab, key: Path, certificate: Path) -> None:
    """Have the authority that the hosts trust sign a key for their account."""
    argv = [
        "ssh-keygen",
        "-q",
        "-s",
        str(lab.folder / "authority"),
        "-I",
        "test",
        "-n",
        lab.hosts[0].user,
        f"{key}.pub",
    ]
    subprocess.run(argv, check=True)
    made = key.with_name(f"{key.name}-cert.pub")
    if made != certificate:
        made.rename(certificate)


def test_a_certificate_beside_its_key_lets_the_user_in(
    lab: SshLab, config: Path, kind: TransportKind, key: Path
) -> None:
    begin_with(config, "Host *", f"  IdentityFile {key}")
    with pytest.raises(BackendUnavailableError, match="does not let"):
        hostname_by(config, kind)
    sign(lab, key, Path(f"{key}-cert.pub"))
    assert hostname_by(config, kind) == "h1"


def test_a_certificate_may_lie_elsewhere(lab: SshLab, config: Path, kind: TransportKind, key: Path) -> None:
    (key.parent / "certificates").mkdir()
    certificate = key.parent / "certificates" / "signed.pub"
    sign(lab, key, certificate)
    begin_with(config, "Host *", f"  IdentityFile {key}", f"  CertificateFile {certificate}")
    assert hostname_by(config, kind) == "h1"


@pytest.fixture
def master(lab: SshLab, config: Path, key: Path) -> Iterator[Path]:
    """Yield the user's own master to h1, as after a login with a second factor; without it the host lets nobody in."""
    shared = key.parent / "master"
    argv = ["ssh", "-F", str(lab.config), "-o", "BatchMode=yes", "-M", "-S", str(shared)]
    begun = subprocess.Popen([*argv, "-N", "h1"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(shared.exists, "the master")
        begin_with(config, "Host *", f"  IdentityFile {key}", "  IdentitiesOnly yes", f"  ControlPath {shared}")
        yield shared
    finally:
        begun.terminate()
        begun.wait()


def test_trials_run_over_the_master_that_the_user_has_and_it_stays(
    make: LabBackends, home: Home, config: Path, master: Path
) -> None:
    backend = make(home, config_file=str(config), transport="openssh")
    assert end(backend, start(backend, home, "report(a=1)")).state is TrialState.SUCCEEDED
    backend.close()
    argv = ["ssh", "-F", str(config), "-O", "check", "h1"]
    assert subprocess.run(argv, check=False, capture_output=True).returncode == 0
    moved = master.with_name("hidden")
    master.rename(moved)
    try:
        with pytest.raises(BackendUnavailableError, match="does not let"):
            hostname_by(config, TransportKind.OPENSSH)
    finally:
        moved.rename(master)


def test_a_stale_socket_of_a_master_that_is_gone_is_in_nobodys_way(
    lab: SshLab, config: Path, kind: TransportKind, tmp_path: Path
) -> None:
    stale = tmp_path / "gone"
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(stale))
    shared = ("  ControlMaster auto", f"  ControlPath {stale}", "  ControlPersist 60")
    begin_with(config, "Host *", *shared, f"  IdentityFile {lab.folder / 'user_key'}")
    assert hostname_by(config, kind) == "h1"
    assert stale.is_socket()  # it is the user's, and stays as it was


@pytest.fixture
def second_server(lab: SshLab) -> Iterator[LabHost]:
    """Yield a host whose server listens at port 2222 as well."""
    host = lab.hosts[1]
    pid = host.server / "second.pid"
    host.start_server("second", f"Port 2222\nPidFile {host.files.lab}/second.pid\n")
    wait_until(pid.exists, "the second server")
    yield host
    host.run("kill", pid.read_text().strip())
    wait_until(lambda: not pid.exists(), "the end of the second server")


def test_an_alias_for_host_keys_and_another_port_are_followed_from_included_files(
    lab: SshLab, config: Path, kind: TransportKind, tmp_path: Path, second_server: LabHost
) -> None:
    known = tmp_path / "known"
    known.write_text(f"the-box {second_server.public_key}\n")
    (tmp_path / "conf.d").mkdir()
    lines = [
        "Host box", f"  HostName {second_server.address}", "  Port 2222", f"  User {second_server.user}",
        "  HostKeyAlias the-box", f"  IdentityFile {lab.folder / 'user_key'}", f"  UserKnownHostsFile {known}",
    ]  # fmt: skip
    (tmp_path / "conf.d" / "10-box.conf").write_text("\n".join(lines) + "\n")
    (tmp_path / "conf.d" / "20-all.conf").write_text("Host *\n  Port 1\n  StrictHostKeyChecking yes\n")
    begin_with(config, f"Include {tmp_path}/conf.d/*.conf")
    assert hostname_by(config, kind, "box") == "h2"
    known.write_text(f"the-box {lab.hosts[0].public_key}\n")
    with pytest.raises(BackendUnavailableError, match="has changed"):
        hostname_by(config, kind, "box")


def test_nothing_listens_on_the_side_of_the_manager_or_beside_the_server_there(
    lab: SshLab, make: LabBackends, home: Home, host: LabHost, kind: TransportKind
) -> None:
    backend = make(home, transport=str(kind))
    ref = start(backend, home, COUNTS)
    wait_until(lambda: status(backend, ref).state is TrialState.RUNNING, "the trial")
    assert lab.in_controller("ss", "-lntuH") == ""
    there = host.run("ss", "-lntuH").splitlines()
    assert [line.split()[4] for line in there] == [f"{host.address}:22"]
    backend.put(ref, "control/enough", b"")
    assert end(backend, ref).state is TrialState.SUCCEEDED
