"""The check of an SSH profile, over real servers: every step, what is said where one fails, and nothing left behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_autotrain import backends
from jupyter_autotrain.backends.ssh import host_checks
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.client.backend_check import check_backend
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.backend_check import CheckStep, HostKeyBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.testing import wait_until
from tests.labs import ssh_lab

ALL_STEPS = ["resolve", "connect", "host key", "login shell", "Python", "free disk", "what it has"]
TRIAL_STEPS = ["upload", "tiny trial", "metric back", "clean"]


def profile(lab: ssh_lab.SshLab, **options: object) -> Profile:
    hosts = options.pop("hosts", ["h1"])
    known = {"hosts": hosts, "config_file": str(lab.config), "python": sys.executable, **options}
    return Profile("lab", "ssh", known)  # type: ignore[arg-type] # plain values


def jobs(lab: ssh_lab.SshLab) -> set[Path]:
    """Return the folders of all homes that have jobs on the hosts."""
    folders = [host.home(user) / ".autotrain" / "jobs" for host in lab.hosts for user in ("", "printing")]
    return {path for folder in folders if folder.exists() for path in folder.iterdir()}


def failure(lab: ssh_lab.SshLab, **options: object) -> CheckStep:
    """Return the last step of a check, which fails; all before it succeed."""
    *good, last = check_backend(profile(lab, **options))
    assert all(step.is_good for step in good)
    assert not last.is_good
    return last


def test_a_host_is_checked_from_its_name_to_a_metric_of_a_trial_and_nothing_is_left(lab: ssh_lab.SshLab) -> None:
    before = jobs(lab)
    steps = list(check_backend(profile(lab, hosts=["h1", {"host": "h2", "user": "printing"}])))
    assert [step.name for step in steps] == 2 * [*ALL_STEPS, *TRIAL_STEPS]
    assert all(step.is_good for step in steps)
    assert [step.node for step in steps] == ["h1"] * 11 + ["h2"] * 11
    texts = {step.name: step.text for step in steps[:11]}
    assert texts["resolve"] == "ada@10.77.0.11, port 22"
    assert "SHA256:" in texts["host key"]
    assert sys.executable in texts["Python"]
    assert texts["what it has"].startswith("no GPUs; ")
    for host in lab.hosts:
        wait_until(lambda host=host: not host.commands(), "the end of everything on the host")
    assert jobs(lab) == before


def test_a_slow_login_shell_is_told_with_what_it_costs(lab: ssh_lab.SshLab) -> None:
    steps = {step.name: step for step in check_backend(profile(lab, user="slow"))}
    assert steps["login shell"].is_good
    assert int(steps["login shell"].text.split()[0]) > 1000 * host_checks._SLOW_SHELL_S
    assert "paid once per connection" in steps["login shell"].action


@pytest.mark.parametrize("transport", ["paramiko", "openssh"])
def test_an_unknown_host_key_is_told_with_the_one_command_that_trusts_it(lab: ssh_lab.SshLab, transport: str) -> None:
    lab.trust(lab.hosts[1:])
    step = failure(lab, transport=transport)
    assert step.name == "host key"
    _, _, command = step.action.partition("run: ")
    words = command.split()
    assert words[:5] == ["%autotrain", "backends", "trust", "lab", "h1"]
    backend = backends.create(profile(lab, transport=transport), BackendContext(Home(Path("/nonexistent"))))
    assert isinstance(backend, HostKeyBackend)
    assert backend.host_key("h1")[1] == words[5]
    assert backend.trust("h1", words[5]) == str(lab.known_hosts)
    assert all(step.is_good for step in check_backend(profile(lab, transport=transport)))


def test_a_key_is_added_to_a_file_that_does_not_end_its_last_line(lab: ssh_lab.SshLab) -> None:
    lab.trust(lab.hosts[1:])
    lab.known_hosts.write_text(lab.known_hosts.read_text().rstrip("\n"))
    backend = SshBackend(profile(lab), BackendContext(Home(Path("/nonexistent"))))
    for _ in range(2):
        backend.trust("h1", backend.host_key("h1")[1])
    assert len(lab.known_hosts.read_text().splitlines()) == len(lab.hosts)


def test_whoever_submits_to_an_unknown_host_is_told_the_command_that_trusts_it(lab: ssh_lab.SshLab) -> None:
    lab.trust(lab.hosts[1:])
    backend = SshBackend(profile(lab), BackendContext(Home(Path("/nonexistent"))))
    try:
        shown = backend.host_key("h1")[1]
        probe = backend.probe()
    finally:
        backend.close()
    assert not probe.usable
    assert f"%autotrain backends trust lab h1 {shown}" in probe.reason
    both = SshBackend(profile(lab, hosts=["h1", "h2"]), BackendContext(Home(Path("/nonexistent"))))
    try:
        assert both.probe().reason == "Hosts that answer: h2; not trusted: h1."
    finally:
        both.close()


@pytest.mark.parametrize("transport", ["paramiko", "openssh"])
def test_an_unknown_host_in_between_is_told_with_the_command_that_trusts_it(
    lab: ssh_lab.SshLab, transport: str, tmp_path: Path
) -> None:
    gate = lab.hosts[0]
    gate.start_server("gate", "", "-p", "2022")
    config = tmp_path / "config"
    behind = f"Host h2\n  ProxyJump ada@gate:2022\nHost gate\n  HostName {gate.address}\n"
    own = f"Host *\n  UserKnownHostsFile {lab.known_hosts}\n  IdentityFile {lab.folder}/user_key\n"
    config.write_text(f"{behind}{lab.config.read_text()}{own}")
    lab.trust(lab.hosts[1:])
    behind_it = profile(lab, transport=transport, config_file=str(config), hosts=["h2"])
    (bad,) = [step for step in check_backend(behind_it) if not step.is_good]
    assert "The host key of gate is not known" in bad.text
    words = bad.action.partition("run: ")[2].split()
    assert words[:5] == ["%autotrain", "backends", "trust", "lab", "ada@gate:2022"]
    backend = SshBackend(behind_it, BackendContext(Home(Path("/nonexistent"))))
    assert backend.trust("ada@gate:2022", words[5]) == str(lab.known_hosts)
    backend.close()
    assert all(step.is_good for step in check_backend(behind_it))


def test_a_host_without_the_interpreter_is_told(lab: ssh_lab.SshLab) -> None:
    step = failure(lab, python="python9")
    assert step.name == "Python"
    assert "python9 does not run on h1" in step.text
    assert "`python: /opt/venv/bin/python` in the profile" in step.action
    for other in ("/bin/echo", "/bin/true"):
        step = failure(lab, python=other)
        assert step.name == "Python"
        assert f"{other} does not run on h1" in step.text


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ('echo \'["3.8.10", "/usr/bin/python3", "/tmp", true, 1000000000]\'', "is Python 3.8.10, which is too old"),
        ("echo '[1, 2]'", "does not run on h1: [1, 2]"),
        ("exec yes", "on h1 prints without end: b'y"),
    ],
)
def test_an_interpreter_that_cannot_be_used_fails_at_its_step(
    lab: ssh_lab.SshLab, scratch: str, program: str, told: str
) -> None:
    step = failure(lab, python=lab.hosts[0].write(scratch, f"#!/bin/sh\n{program}\n", 0o755))
    assert step.name == "Python"
    assert told in step.text
    assert "in the profile" in step.action


def test_an_interpreter_may_lie_below_the_home_there(lab: ssh_lab.SshLab) -> None:
    folder = lab.hosts[0].home() / "my venv"
    folder.mkdir()
    (folder / "python").symlink_to("/usr/bin/python3")
    steps = list(check_backend(profile(lab, python="~/my venv/python"), ["h1"]))
    assert [step.text for step in steps if not step.is_good] == []


def test_a_host_that_lets_nobody_in_is_told(lab: ssh_lab.SshLab) -> None:
    step = failure(lab, user="stranger")
    assert (step.name, step.node) == ("log in", "h1")
    assert "does not let 'stranger' in" in step.text


def test_a_host_off_the_network_and_a_name_that_nobody_knows_are_told(
    lab: ssh_lab.SshLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_checks, "CONNECT_S", 0.5)
    lab.hosts[0].cut()
    step = failure(lab)
    assert step.name == "connect"
    assert "does not answer" in step.text
    assert failure(lab, hosts=["nosuch"]).name == "resolve"


def test_a_host_that_cannot_be_used_does_not_keep_the_others_from_being_checked(lab: ssh_lab.SshLab) -> None:
    steps = list(check_backend(profile(lab, hosts=["nosuch", "h2"])))
    assert [step.name for step in steps if step.node == "h2"] == [*ALL_STEPS, *TRIAL_STEPS]
