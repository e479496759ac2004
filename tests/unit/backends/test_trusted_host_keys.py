"""`backends trust`: the key that is trusted is the only one of its host."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest

from jupyter_autotrain.backends.ssh import host_keys
from jupyter_autotrain.backends.ssh.host import ResolvedHost
from jupyter_autotrain.backends.ssh.host_keys import known_keys
from jupyter_autotrain.backends.ssh.transport import HostKey, HostKeyError

OLD = HostKey("ssh-ed25519", base64.b64encode(b"old key").decode())
OLD_RSA = HostKey("ssh-rsa", base64.b64encode(b"old rsa key").decode())
NEW = HostKey("ssh-ed25519", base64.b64encode(b"new key").decode())


class Host:
    """A host, as `trust` reads it."""

    name = "gpu1"
    key_name = "gpu1"

    def __init__(self, trust_file: Path) -> None:
        self.trust_file = str(trust_file)


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return tmp_path / "known_hosts"


def trust(known: Path, key: HostKey) -> None:
    host: ResolvedHost = Host(known)  # type: ignore[assignment]  # it has what is read
    host_keys.trust(host, key, host_keys.fingerprint(key))


def test_a_new_key_takes_the_place_of_the_old_ones(known: Path) -> None:
    others = f"# mine\ngpu2 {OLD.type} {OLD.base64}\n@cert-authority gpu1 {OLD.type} {OLD.base64}\n"
    known.write_text(f"{others}gpu1 {OLD.type} {OLD.base64}\ngpu1 {OLD_RSA.type} {OLD_RSA.base64}")
    trust(known, NEW)
    assert known.read_text() == f"{others}gpu1 {NEW.type} {NEW.base64}\n"
    assert known_keys([str(known)], "gpu1").keys == (NEW,)


def test_lines_that_other_hosts_fit_stay(known: Path) -> None:
    line = f"*.lab,gpu1 {OLD.type} {OLD.base64}\n"
    known.write_text(line)
    trust(known, NEW)
    assert known.read_text() == f"{line}gpu1 {NEW.type} {NEW.base64}\n"


def test_the_same_key_is_kept_once(known: Path) -> None:
    trust(known, NEW)
    trust(known, NEW)
    assert known.read_text() == f"gpu1 {NEW.type} {NEW.base64}\n"
    assert stat.S_IMODE(known.stat().st_mode) == 0o600


def test_another_fingerprint_changes_nothing(known: Path) -> None:
    known.write_text(f"gpu1 {OLD.type} {OLD.base64}\n")
    host: ResolvedHost = Host(known)  # type: ignore[assignment]  # it has what is read
    with pytest.raises(HostKeyError, match="Nothing was trusted"):
        host_keys.trust(host, NEW, "SHA256:another")
    assert known_keys([str(known)], "gpu1").keys == (OLD,)
