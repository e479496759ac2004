"""Reading a simple SSH configuration where there is no `ssh` to ask: paramiko's own reader."""

from __future__ import annotations

import getpass
from pathlib import Path

from jupyter_autotrain.backends.ssh.address import HostAddress

_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")


def look_up(address: HostAddress) -> dict[str, list[str]]:
    """The options of a host, in the form in which `ssh -G` gives them."""
    from paramiko.config import SSHConfig  # noqa: PLC0415 - an optional package

    home = Path.home() / ".ssh"
    file = Path(address.config_file) if address.config_file else home / "config"
    known = SSHConfig.from_text(file.read_text()) if file.is_file() else SSHConfig()
    found = known.lookup(address.name)
    answer = {key: [value] if isinstance(value, str) else list(value) for key, value in found.items()}
    answer.setdefault("user", [getpass.getuser()])
    answer.setdefault("userknownhostsfile", [str(home / "known_hosts")])
    answer.setdefault("identityfile", [str(home / name) for name in _KEYS])
    if address.user is not None:
        answer["user"] = [address.user]
    if address.port is not None:
        answer["port"] = [str(address.port)]
    if address.key_file:
        answer["identityfile"].insert(0, address.key_file)
    return answer
