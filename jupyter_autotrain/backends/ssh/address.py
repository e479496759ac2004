"""The address of a host, as a profile gives it, and what holds where it says nothing.

Read by the manager without pydantic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from jupyter_autotrain.errors import BackendError

DEFAULT_PYTHON = "python3"
DEFAULT_WORKDIR = "~/.autotrain"
DEFAULT_CACHE_LIMIT_BYTES = 5_000_000_000


class TransportKind(StrEnum):
    """The program or library that makes the connections."""

    PARAMIKO = "paramiko"
    OPENSSH = "openssh"


@dataclass(frozen=True, slots=True)
class HostAddress:
    """The address of a host, as a profile gives it.

    Attributes:
        name: A name of the user's SSH configuration, or of the network.
        user, port: None: as the SSH configuration says.
        key_file: Path of a private key, tried before those of the configuration; "" for none.
        config_file: An SSH configuration in the place of the user's own; "" for that one.
        profile: The profile that names it, for messages.
        spelling: How a host in between is written, with user and port; "": by its name.
    """

    name: str
    user: str | None = None
    port: int | None = None
    key_file: str = ""
    config_file: str = ""
    profile: str = "ssh"
    spelling: str = field(default="", compare=False)

    def ssh_options(self) -> list[str]:
        """Return the arguments that say the same to `ssh`."""
        options = ["-F", self.config_file] if self.config_file else []
        if self.user is not None:
            options += ["-l", self.user]
        if self.port is not None:
            options += ["-p", str(self.port)]
        if self.key_file:
            options += ["-i", self.key_file]
        return options


def jump_address(jump: str, config_file: str, profile: str = "ssh") -> HostAddress:
    """Return the address of a host to go through, written as `[USER@]HOST[:PORT]` or `ssh://...`.

    Raises:
        BackendError: The port is no number.
    """
    user, name, port = _parts(jump)
    if port and not port.isdigit():
        raise BackendError(f"The host to go through, {jump!r}, has no valid port.", "USER@HOST:PORT.")
    number = int(port) if port else None
    return HostAddress(name, user or None, number, config_file=config_file, profile=profile, spelling=jump)


def _parts(text: str) -> tuple[str, str, str]:
    """Return user, name and port of `[ssh://][USER@]HOST[:PORT]`.

    An IPv6 address with a port stands in brackets.
    """
    user, _, endpoint = text.removeprefix("ssh://").rpartition("@")
    if endpoint.startswith("["):
        name, _, port = endpoint[1:].partition("]")
        return user, name, port.removeprefix(":")
    name, _, port = endpoint.partition(":")
    return (user, endpoint, "") if ":" in port else (user, name, port)


def named_host(value: object) -> object:
    """Return the options of a host given by its name alone or as `USER@HOST:PORT`; other values stay."""
    if not isinstance(value, str):
        return value
    user, name, port = _parts(value)
    host: dict[str, object] = {"host": name if port.isdigit() or not port else f"{name}:{port}"}
    if user:
        host["user"] = user
    if port.isdigit():
        host["port"] = int(port)
    return host
