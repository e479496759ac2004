"""Tests of how a host is reached, as the profile and the user's SSH configuration say; no network."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_autotrain.backends.ssh import host, host_keys
from jupyter_autotrain.backends.ssh.address import HostAddress, jump_address, named_host
from jupyter_autotrain.backends.ssh.host import resolve
from jupyter_autotrain.backends.ssh.host_keys import KnownKeys, known_keys
from jupyter_autotrain.backends.ssh.transport import HostKey, HostKeyError, quote
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
        ("bo@[fd00::7]:2222", HostAddress("fd00::7", "bo", 2222)),
        ("[fd00::7]", HostAddress("fd00::7")),
        ("fd00::7", HostAddress("fd00::7")),
    ],
)
def test_hosts_to_go_through_are_read_as_ssh_writes_them(text: str, expected: HostAddress) -> None:
    assert jump_address(text, "") == expected


def test_a_host_to_go_through_with_a_bad_port_is_an_error() -> None:
    with pytest.raises(BackendError, match="no valid port"):
        jump_address("gate:ssh", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu1", {"host": "gpu1"}),
        ("ada@gpu1:2222", {"host": "gpu1", "user": "ada", "port": 2222}),
        ("ada@fd00::7", {"host": "fd00::7", "user": "ada"}),
        ("[fd00::7]:2222", {"host": "fd00::7", "port": 2222}),
    ],
)
def test_a_host_of_a_profile_is_read_as_after_ssh(text: str, expected: dict[str, object]) -> None:
    assert named_host(text) == expected


def test_paths_of_keys_may_name_the_host_the_user_and_the_environment(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_ssh()
    monkeypatch.setenv("KEYS", str(config.parent))
    keys = [config.parent / name for name in ("ada 10.0.0.7", "gpu1")]
    for key in keys:
        key.touch()
    config.write_text(f'Host gpu1\n  IdentityFile "{config.parent}/%r %h"\n  IdentityFile ${{KEYS}}/%n\n{PLAIN}')
    assert resolve(HostAddress("gpu1", config_file=str(config))).key_files == tuple(map(str, keys))


def test_where_no_known_hosts_are_kept_trusting_says_so_and_writes_nothing(config: Path) -> None:
    needs_ssh()
    config.write_text(f"Host gpu1\n  UserKnownHostsFile /dev/null\n{PLAIN}")
    found = resolve(HostAddress("gpu1", config_file=str(config)))
    key = HostKey("ssh-ed25519", "AAAA")
    with pytest.raises(HostKeyError, match="keeps no known hosts") as caught:
        host_keys.trust(found, key, host_keys.fingerprint(key))
    assert "UserKnownHostsFile ~/.ssh/known_hosts" in caught.value.action


def test_hosts_in_between_may_be_behind_others(config: Path) -> None:
    needs_ssh()
    connecting = pytest.importorskip("jupyter_autotrain.backends.ssh.paramiko_connecting")
    config.write_text("Host inner\n  ProxyJump middle\nHost middle\n  ProxyJump outer,bo@next\n")
    address = HostAddress("inner", config_file=str(config))
    assert [hop.name for hop in connecting._route(address)] == ["outer", "next", "middle", "inner"]
    config.write_text(f"{config.read_text()}Host outer\n  ProxyJump inner\n")
    with pytest.raises(BackendUnavailableError, match="circle"):
        connecting._route(address)
    config.write_text("Host inner\n  ProxyJump outer\nHost outer\n  ProxyCommand nc %h %p\n")
    with pytest.raises(BackendUnavailableError, match="ProxyCommand for outer") as caught:
        connecting._route(address)
    assert "transport: openssh" in caught.value.action


def known(file: Path, text: str, name: str = "gpu1.lab") -> KnownKeys:
    file.write_text(text)
    return known_keys([str(file), "/nonexistent/known_hosts"], name)


OLD = HostKey("ssh-ed25519", "b2xk")
NEW = HostKey("ssh-ed25519", "bmV3")


@pytest.mark.parametrize("names", ["gpu1.lab", "other,GPU?.lab", "*.lab,!gpu2.lab"])
def test_known_hosts_may_be_patterns_and_have_several_keys(tmp_path: Path, names: str) -> None:
    text = f"# the lab\n\nbroken\n{names} ssh-ed25519 b2xk ada@home\n{names} ssh-ed25519 bmV3\n"
    assert known(tmp_path / "known_hosts", text).keys == (OLD, NEW)


@pytest.mark.parametrize("names", ["gpu1", "*.lab,!gpu1.*", "[gpu1.lab]:2222", "|1|no|hash", "gpu1xlab"])
def test_known_hosts_about_others_say_nothing(tmp_path: Path, names: str) -> None:
    assert known(tmp_path / "known_hosts", f"{names} ssh-ed25519 b2xk\n") == KnownKeys()


def test_a_port_is_a_part_of_a_known_name_and_names_may_be_hashed(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text("[gpu1.lab]:2222 ssh-ed25519 b2xk\n")
    assert known_keys([str(file)], "[gpu1.lab]:2222").keys == (OLD,)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    file.write_text(f"gpu1.lab {key.with_suffix('.pub').read_text()}")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "gpu1" not in file.read_text()
    assert len(known_keys([str(file)], "gpu1.lab").keys) == 1


def test_a_revoked_key_is_not_known_and_an_authority_is_no_key(tmp_path: Path) -> None:
    lines = "gpu1.lab ssh-ed25519 b2xk\n@revoked * ssh-ed25519 b2xk\n@cert-authority *.lab ssh-ed25519 bmV3\n"
    assert known(tmp_path / "known_hosts", lines) == KnownKeys((), (OLD,), has_authority=True)


def test_a_key_that_is_revoked_under_the_name_alone_is_refused_at_another_port(config: Path) -> None:
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    import paramiko

    from jupyter_autotrain.backends.ssh import paramiko_connecting

    key = paramiko.RSAKey.generate(1024)
    file = config.with_name("known_hosts")
    file.write_text(f"@revoked 10.0.0.7 {key.get_name()} {key.get_base64()}\n")
    found = replace(resolve(HostAddress("gpu1", config_file=str(config))), known_hosts=(str(file),))
    policy = paramiko_connecting.KnownKeysOnly(found, known_keys(found.known_hosts, found.key_name))
    with pytest.raises(HostKeyError, match="gpu1 is revoked"):
        policy.missing_host_key(None, found.key_name, key)


def test_words_are_quoted_for_every_login_shell_or_refused() -> None:
    assert quote("/usr/bin/python3") == "/usr/bin/python3"
    assert quote("a b;$c") == "'a b;$c'"
    assert quote("~/my venv/bin/python") == "~/'my venv/bin/python'"
    for word in ("it's", "a\\b", "hey!", "two\nlines"):
        with pytest.raises(BackendError, match="login shell"):
            quote(word)
