"""How a host is reached, as the profile and the user's SSH configuration say; no network."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jupyter_autotrain.backends.ssh import host
from jupyter_autotrain.backends.ssh.address import HostAddress, jump_address
from jupyter_autotrain.backends.ssh.host import resolve
from jupyter_autotrain.backends.ssh.transport import quote
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

PLAIN = """
Host gpu1
  HostName 10.0.0.7
  Port 2200
  User ada
  ProxyJump bo@gate:2222
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config"
    file.write_text(PLAIN)
    return file


@pytest.fixture
def no_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.shutil, "which", lambda _name: None)
    monkeypatch.setattr(host, "_SYSTEM_CONFIG", "/nonexistent/ssh_config")


def needs_ssh() -> None:
    if shutil.which("ssh") is None:
        pytest.skip("there is no `ssh` program here")


def check(found: host.ResolvedHost) -> None:
    assert (found.name, found.hostname, found.port, found.user) == ("gpu1", "10.0.0.7", 2200, "ada")
    assert found.key_name == "[10.0.0.7]:2200"
    assert found.jumps == ("bo@gate:2222",)


def test_ssh_itself_is_asked_for_the_configuration(config: Path) -> None:
    needs_ssh()
    check(resolve(HostAddress("gpu1", config_file=str(config))))


def test_without_an_ssh_program_a_plain_configuration_is_read_alike(config: Path, no_ssh: None) -> None:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    check(resolve(HostAddress("gpu1", config_file=str(config))))


def test_what_the_profile_says_goes_before_the_configuration(config: Path) -> None:
    needs_ssh()
    key = config.parent / "key"
    key.write_text("")
    found = resolve(HostAddress("gpu1", user="eve", port=22, key_file=str(key), config_file=str(config)))
    assert (found.user, found.port, found.key_name) == ("eve", 22, "10.0.0.7")
    assert str(key) in found.key_files


@pytest.mark.parametrize("line", ["Include more", "Match localnetwork 10.0.0.0/8", "match=tagged t"])
def test_without_an_ssh_program_what_only_it_can_read_is_an_error(config: Path, no_ssh: None, line: str) -> None:
    config.write_text(f"{line}\n{PLAIN}")
    with pytest.raises(BackendUnavailableError, match="line 1") as caught:
        resolve(HostAddress("gpu1", config_file=str(config)))
    assert line in caught.value.found
    assert "Install the OpenSSH client" in caught.value.action


def test_a_configuration_that_ssh_refuses_is_shown(config: Path) -> None:
    needs_ssh()
    config.write_text("Host x\n  NoSuchOption yes\n")
    with pytest.raises(BackendUnavailableError, match=r"(?i)nosuchoption"):
        resolve(HostAddress("x", config_file=str(config)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gate", HostAddress("gate")),
        ("bo@gate:2222", HostAddress("gate", "bo", 2222)),
        ("ssh://bo@gate:22", HostAddress("gate", "bo", 22)),
    ],
)
def test_hosts_to_go_through_are_read_as_ssh_writes_them(text: str, expected: HostAddress) -> None:
    assert jump_address(text, "") == expected


def test_a_host_to_go_through_with_a_bad_port_is_an_error() -> None:
    with pytest.raises(BackendError, match="no valid port"):
        jump_address("gate:ssh", "")


def test_words_are_quoted_for_every_login_shell_or_refused() -> None:
    assert quote("/usr/bin/python3") == "/usr/bin/python3"
    assert quote("a b;$c") == "'a b;$c'"
    for word in ("it's", "a\\b", "hey!", "two\nlines"):
        with pytest.raises(BackendError, match="login shell"):
            quote(word)
