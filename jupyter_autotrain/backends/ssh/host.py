"""The address of a host to connect to: the profile's options, completed by the user's own SSH configuration.

Where there is no `ssh` to ask, paramiko reads a simple configuration.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jupyter_autotrain.backends.ssh.address import HostAddress
from jupyter_autotrain.errors import BackendUnavailableError

_SYSTEM_CONFIG = "/etc/ssh/ssh_config"
_ASK_S = 20.0
_PUBLIC = ".pub"
_NONE = frozenset({"", "none"})
_NO_KNOWN_HOSTS = _NONE | {os.devnull}
# Options that paramiko cannot follow, in words.
_ONLY_OPENSSH: Final = MappingProxyType(
    {"proxycommand": "a ProxyCommand", "knownhostscommand": "a KnownHostsCommand", "revokedhostkeys": "RevokedHostKeys"}
)
_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")


@dataclass(frozen=True, slots=True)
class ResolvedHost:
    """The facts of a host that a connection needs, without names that only the SSH configuration knows.

    Attributes:
        name: As the user calls it.
        trusted_as: What `backends trust` calls it: of a host in between with user and port.
        key_name: What its key is filed under in `known_hosts`.
        known_hosts: Files of known keys.
        trust_file: The one of them that a key is added to; "" where the user has none.
        jumps: Hosts to go through, in this order.
        proxy_command: A program that makes the connection, or "".
        only_openssh: What the configuration has that only the OpenSSH program can follow, such as a ProxyCommand.
        profile: The profile that names it, for messages.
        identity_agent: The socket of the agent that holds keys; "": the one of the environment.
        certificates: Files of certificates for the keys; one beside its key is found without.
        only_key_files: Of an agent's keys only those of the named files are used.
        public_key_files: The public keys of the named files; the private ones may be with an agent only.
    """

    name: str
    hostname: str
    port: int
    user: str
    key_name: str
    key_files: tuple[str, ...]
    known_hosts: tuple[str, ...]
    trusted_as: str = field(default="", compare=False)
    trust_file: str = ""
    jumps: tuple[str, ...] = ()
    proxy_command: str = ""
    only_openssh: tuple[str, ...] = ()
    identity_agent: str = ""
    profile: str = "ssh"
    only_key_files: bool = False
    public_key_files: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()

    @property
    def key_name_without_port(self) -> str:
        """The other name that its key may be filed under, as OpenSSH has it; "" where that is `key_name`."""
        named, bracket, _ = self.key_name.removeprefix("[").rpartition("]:")
        return named if bracket else ""


def resolve(address: HostAddress) -> ResolvedHost:
    """Complete an address, by `ssh -G` where there is an `ssh`.

    Raises:
        BackendUnavailableError: The configuration cannot be read, or only an `ssh` could read it.
    """
    if shutil.which("ssh"):
        return _from_answer(address, _ask_ssh(address))
    _refuse_what_only_ssh_reads(address)
    return _from_answer(address, look_up(address))


def _ask_ssh(address: HostAddress) -> dict[str, list[str]]:
    argv = ["ssh", "-G", *address.ssh_options(), "--", address.name]
    try:
        asked = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False,
            timeout=_ASK_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise BackendUnavailableError(
            f"The SSH configuration for {address.name!r} cannot be read: no answer within {_ASK_S:.0f} s.",
            "A configuration whose `Match exec` commands end.",
            f"Run `ssh -G {address.name}` in a terminal.",
        ) from None
    if asked.returncode != 0:
        raise BackendUnavailableError(
            f"The SSH configuration for {address.name!r} cannot be read: {asked.stderr.strip()[:300]}",
            "A configuration that `ssh` accepts.",
            f"Run `ssh -G {address.name}` in a terminal.",
        )
    answer: dict[str, list[str]] = {}
    for line in asked.stdout.splitlines():
        key, _, value = line.partition(" ")
        answer.setdefault(key.lower(), []).append(value)
    return answer


def _from_answer(address: HostAddress, answer: dict[str, list[str]]) -> ResolvedHost:
    def first(key: str, default: str = "") -> str:
        value = answer.get(key, [default])[0]
        return "" if value in _NONE else value

    hostname = first("hostname", address.name)
    port = int(first("port", "22"))
    filed_under = first("hostkeyalias") or hostname
    tokens = _tokens(address.name, hostname, port, first("user"), filed_under)
    own = _known_files(first("userknownhostsfile"), tokens)
    jumps = first("proxyjump")
    return ResolvedHost(
        name=address.name,
        trusted_as=address.spelling or address.name,
        profile=address.profile,
        hostname=hostname,
        port=port,
        user=first("user"),
        key_name=filed_under if port == 22 or first("hostkeyalias") else f"[{filed_under}]:{port}",
        key_files=_private_keys(answer.get("identityfile", []), tokens),
        public_key_files=_public_keys(answer.get("identityfile", []), tokens),
        certificates=_files(answer.get("certificatefile", []), tokens),
        known_hosts=(*own, *_known_files(first("globalknownhostsfile"), tokens)),
        trust_file=own[0] if own else "",
        jumps=tuple(jumps.split(",")) if jumps else (),
        proxy_command=first("proxycommand"),
        only_openssh=tuple(_ONLY_OPENSSH[key] for key in _ONLY_OPENSSH if first(key)),
        identity_agent=_expanded(first("identityagent"), tokens),
        only_key_files=first("identitiesonly") == "yes",
    )


def _tokens(name: str, hostname: str, port: int, user: str, filed_under: str) -> dict[str, str]:
    """Return the values of percent tokens.

    See ssh_config(5), TOKENS; `ssh -G` does not expand them in paths of keys.
    """
    here = socket.gethostname()
    return {
        "%": "%", "d": str(Path.home()), "h": hostname, "i": str(os.getuid()), "k": filed_under, "l": here,
        "L": here.partition(".")[0], "n": name, "p": str(port), "r": user, "u": getpass.getuser(),
    }  # fmt: skip


def _known_files(text: str, tokens: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths that `ssh -G` gives on one line without quotes.

    Each begins at the root or at a home.
    """
    paths = re.split(r"\s+(?=[/~]|none$)", text)
    return tuple(_expanded(path, tokens) for path in paths if path not in _NO_KNOWN_HOSTS)


def _private_keys(paths: list[str], tokens: Mapping[str, str]) -> tuple[str, ...]:
    return _files([path for path in paths if not path.endswith(_PUBLIC)], tokens)


def _public_keys(paths: list[str], tokens: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files of public keys.

    The configuration names the public key itself, or a private key that may be with an agent only.
    """
    return _files([path if path.endswith(_PUBLIC) else f"{path}{_PUBLIC}" for path in paths], tokens)


def _files(paths: list[str], tokens: Mapping[str, str]) -> tuple[str, ...]:
    expanded = [_expanded(path, tokens) for path in paths]
    return tuple(path for path in expanded if Path(path).is_file())


def _expanded(path: str, tokens: Mapping[str, str]) -> str:
    replaced = re.sub("%(.)", lambda token: tokens.get(token[1], token[0]), path.strip('"'))
    return os.path.expandvars(os.path.expanduser(replaced))  # noqa: PTH111 - a text, not opened here


def _refuse_what_only_ssh_reads(address: HostAddress) -> None:
    """Refuse a configuration with `Include` or `Match`, which other readers pass over or take for true."""
    own = address.config_file or os.path.expanduser("~/.ssh/config")  # noqa: PTH111 - a text, not a path to open
    for file in (own, _SYSTEM_CONFIG):
        path = Path(file)
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            keyword = line.strip().replace("=", " ").split(" ")[0].lower()
            if keyword in {"include", "match"}:
                raise BackendUnavailableError(
                    f"{file}, line {number}, has `{line.strip()}`, which only OpenSSH reads rightly.",
                    "An `ssh` program on this machine, or a configuration without Include and Match.",
                    "Install the OpenSSH client, or name host, user, port and key in the profile.",
                )


def look_up(address: HostAddress) -> dict[str, list[str]]:
    """Return the options of a host, in the form in which `ssh -G` gives them."""
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
