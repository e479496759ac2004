"""Making a connection to a host, by the transport that the profile names."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from jupyter_autotrain.backends.ssh import openssh_transport
from jupyter_autotrain.backends.ssh.address import HostAddress, TransportKind
from jupyter_autotrain.backends.ssh.transport import HostKey, Transport
from jupyter_autotrain.errors import MissingExtraError


def check_installed(kind: TransportKind) -> None:
    """Make sure that the program or library of the transport is installed here.

    Raises:
        MissingExtraError: paramiko is asked for and not installed.
    """
    if kind is TransportKind.PARAMIKO and find_spec("paramiko") is None:
        raise _missing(ModuleNotFoundError(name="paramiko"))


def connect(address: HostAddress, kind: TransportKind) -> Transport:
    """Connect to a host.

    Raises:
        BackendUnavailableError: It cannot be reached, is not trusted, or does not let the user in.
        MissingExtraError: paramiko is asked for and not installed.
    """
    if kind is TransportKind.OPENSSH:
        return openssh_transport.OpenSshTransport(address)
    _load_when_used("invoke")  # 100 ms; paramiko imports it for a part of its own reader of configurations
    try:
        from jupyter_autotrain.backends.ssh.paramiko_transport import ParamikoTransport  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    return ParamikoTransport(address)


def host_key(address: HostAddress, kind: TransportKind) -> HostKey:
    """Return the key that a host shows now, trusted or not; hosts in between must be trusted.

    Raises:
        BackendUnavailableError: It cannot be reached.
        MissingExtraError: paramiko is asked for and not installed.
    """
    if kind is TransportKind.OPENSSH:
        return openssh_transport.host_key(address)
    try:
        from jupyter_autotrain.backends.ssh import paramiko_connecting  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    return paramiko_connecting.host_key(address)


def _load_when_used(name: str) -> None:
    """Have a module, where it is installed, loaded by the first look at something in it."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None:
        return
    placeholder = ModuleType(name)
    placeholder.__spec__ = spec

    def load(attribute: str) -> object:
        if sys.modules.get(name) is placeholder:
            del sys.modules[name]
        return getattr(import_module(name), attribute)

    placeholder.__getattr__ = load  # type: ignore[method-assign]  # of a module, as PEP 562 has it
    sys.modules[name] = placeholder


def _missing(error: ModuleNotFoundError) -> MissingExtraError:
    return MissingExtraError(error.name or "paramiko", "ssh", "A backend that is reached by SSH")
