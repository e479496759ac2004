"""Making a connection with paramiko: socket options, hosts in between, host keys, authentication.

The agent that holds a user's keys is asked as OpenSSH asks it.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import paramiko

from jupyter_autotrain.backends.ssh import host_keys
from jupyter_autotrain.backends.ssh.address import HostAddress, jump_address
from jupyter_autotrain.backends.ssh.host import ResolvedHost, resolve
from jupyter_autotrain.backends.ssh.host_keys import KnownKeys, known_keys
from jupyter_autotrain.backends.ssh.transport import CONNECT_S, KEEPALIVE_S, SILENCE_S, HostKey, HostKeyError
from jupyter_autotrain.errors import BackendUnavailableError

_ANSWER_S = 5.0
_LIST_KEYS = b"\0\0\0\1\x0b"  # a message of one byte: SSH_AGENTC_REQUEST_IDENTITIES
_RSA = "ssh-rsa"
_RSA_SIGNATURES = frozenset({"rsa-sha2-512", "rsa-sha2-256"})
_NO_KEY = "No authentication methods available"  # the library's words where there is no key at all


def agent_answers() -> bool:
    """Ask the agent for its keys: the library would wait without end for one that hangs."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(_ANSWER_S)
        agent.connect(os.environ.get("SSH_AUTH_SOCK", ""))
        agent.sendall(_LIST_KEYS)
        return bool(agent.recv(1))
    return False


@contextlib.contextmanager
def first_key(host: ResolvedHost) -> Iterator[paramiko.PKey | None]:
    """Yield the first of the named keys that the agent holds, as OpenSSH takes it, else None.

    It is also None where the configuration allows other keys too, or where no agent answers.
    """
    if not host.only_key_files or not agent_answers():
        yield None
        return
    named: set[str] = set()
    for file in host.public_key_files:
        named.update(Path(file).read_text(encoding="utf-8", errors="replace").split())
    with contextlib.closing(paramiko.Agent()) as agent:
        yield next((key for key in agent.get_keys() if key.get_base64() in named), None)


@contextlib.contextmanager
def at_socket(path: str) -> Iterator[None]:
    """Let paramiko find the agent that the configuration names; it looks only at the environment."""
    if path in {"", "SSH_AUTH_SOCK"}:
        yield
        return
    before = os.environ.get("SSH_AUTH_SOCK")
    os.environ["SSH_AUTH_SOCK"] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ["SSH_AUTH_SOCK"]
        else:
            os.environ["SSH_AUTH_SOCK"] = before


def connect(address: HostAddress) -> list[paramiko.SSHClient]:
    """Connect to a host through all hosts in between; the last client is the host's, the others carry it.

    Raises:
        BackendUnavailableError: It cannot be reached, is not trusted, or does not let the user in.
    """
    clients: list[paramiko.SSHClient] = []
    try:
        for hop in _route(address):
            clients.append(_connect_one(hop, clients[-1] if clients else None))
    except BaseException:
        close(clients)
        raise
    return clients


def close(clients: list[paramiko.SSHClient]) -> None:
    """Close connections, the carried ones first."""
    for client in reversed(clients):
        with contextlib.suppress(EOFError, OSError, paramiko.SSHException):  # what carries it may be gone already
            client.close()


def host_key(address: HostAddress) -> HostKey:
    """Return the key that a host shows now, trusted or not; hosts in between must be trusted.

    Raises:
        BackendUnavailableError: It cannot be reached.
    """
    *between, last = _route(address)
    clients: list[paramiko.SSHClient] = []
    try:
        for hop in between:
            clients.append(_connect_one(hop, clients[-1] if clients else None))
        with _explained(last):
            stream = _socket(last, clients[-1] if clients else None)
            transport = _transport(known_keys(last.known_hosts, last.key_name), stream)
            try:
                transport.start_client(timeout=CONNECT_S)
                key = transport.get_remote_server_key()
            finally:
                transport.close()
        return HostKey(key.get_name(), key.get_base64())
    finally:
        close(clients)


def _route(address: HostAddress) -> list[ResolvedHost]:
    """Return the hosts to connect to, one through the other.

    The first of them may itself be behind others.
    """
    host = resolve(address)
    route = [host]
    first = host
    while first.jumps:
        between = [resolve(jump_address(jump, address.config_file, address.profile)) for jump in first.jumps]
        first = between[0]
        if first in route:
            raise BackendUnavailableError(
                f"The way to {host.name} goes in a circle: it comes to {first.name} again.",
                "A ProxyJump that ends.",
                f"Run `ssh -G {first.name}`, and mend your SSH configuration.",
            )
        route = [*between, *route]
    for hop in (first, host):
        _refuse_what_only_openssh_does(hop)
    return route


def _refuse_what_only_openssh_does(host: ResolvedHost) -> None:
    if host.only_openssh:
        raise BackendUnavailableError(
            f"Your SSH configuration has {' and '.join(host.only_openssh)} for {host.name}.",
            "What paramiko can follow, such as ProxyJump, or the OpenSSH program as transport.",
            "Say `transport: openssh` in the profile.",
        )


def _connect_one(host: ResolvedHost, carrier: paramiko.SSHClient | None) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    known = known_keys(host.known_hosts, host.key_name)
    client.set_missing_host_key_policy(KnownKeysOnly(host, known))
    try:
        with _explained(host), at_socket(host.identity_agent), first_key(host) as agent_key:
            client.connect(
                host.key_name, port=22, username=host.user, pkey=_certified_key(host) or agent_key,
                key_filename=list(host.key_files) or None, sock=_socket(host, carrier),
                allow_agent=not host.only_key_files and agent_answers(), look_for_keys=False,
                timeout=CONNECT_S, banner_timeout=CONNECT_S, auth_timeout=CONNECT_S,
                transport_factory=partial(_transport, known),
            )  # fmt: skip
    except BaseException:
        client.close()
        raise
    transport = client.get_transport()
    assert transport is not None
    transport.set_keepalive(KEEPALIVE_S)
    return client


def _certified_key(host: ResolvedHost) -> paramiko.PKey | None:
    """Return the first key that one of the named certificates is for.

    The library looks only beside a key.
    """
    for certificate in host.certificates:
        for file in host.key_files:
            with contextlib.suppress(paramiko.SSHException, OSError, ValueError):  # it may need a passphrase
                key = paramiko.PKey.from_path(file)
                fields = key.asbytes()[4 + len(key.get_name()) :]  # after its type, which a string's length precedes
                key.load_certificate(certificate)
                if fields in key.public_blob.key_blob:
                    return key
    return None


def _transport(known: KnownKeys, stream: socket.socket | paramiko.Channel, **options: object) -> paramiko.Transport:
    """Return a transport that asks for a key of a known type, and prefers authenticated ciphers.

    Those take one pass over the data in the place of two.
    """
    transport = paramiko.Transport(stream, **options)
    security = transport.get_security_options()
    security.ciphers = sorted(security.ciphers, key=lambda name: "gcm" not in name)
    types = {key.type for key in known.keys}
    if _RSA in types:
        types |= _RSA_SIGNATURES
    security.key_types = sorted(security.key_types, key=lambda name: name not in types)
    return transport


def _socket(host: ResolvedHost, carrier: paramiko.SSHClient | None) -> socket.socket | paramiko.Channel:
    """Return a stream to the host's port, without delay for small packets.

    It is lost soon when nothing is acknowledged.
    """
    if carrier is not None:
        inner = carrier.get_transport()
        assert inner is not None
        return inner.open_channel("direct-tcpip", (host.hostname, host.port), ("127.0.0.1", 0), timeout=CONNECT_S)
    stream = socket.create_connection((host.hostname, host.port), timeout=CONNECT_S)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # not on macOS
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE_S * 1000)
    return stream


class KnownKeysOnly(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]  # the library has no types
    """The policy that takes a known key, and raises for another one the error that tells the user what to do."""

    def __init__(self, host: ResolvedHost, known: KnownKeys) -> None:
        self._host = host
        self._known = known

    def missing_host_key(self, client: object, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002 - the library's
        """Decide about the key that the host shows; the library itself knows none."""
        shown = HostKey(key.get_name(), key.get_base64())
        if shown in self._known.keys:
            return
        name = self._host.name
        fingerprint = host_keys.fingerprint(shown)
        otherwise = known_keys(self._host.known_hosts, self._host.key_name_without_port)
        if shown in {*self._known.revoked, *otherwise.revoked}:
            raise host_keys.revoked(name, shown.type, fingerprint)
        if shown.type in {known.type for known in self._known.keys}:
            raise host_keys.changed(self._host, shown.type, fingerprint)
        if self._known.has_authority:
            raise host_keys.not_certified(name, shown.type, fingerprint)
        if shown in otherwise.keys:
            return
        raise host_keys.unknown(self._host, shown.type, fingerprint)


@contextlib.contextmanager
def _explained(host: ResolvedHost) -> Iterator[None]:
    """Turn the library's errors into ours."""
    try:
        yield
    except HostKeyError:
        raise
    except paramiko.AuthenticationException as error:
        raise _not_let_in(host, error) from None
    except (paramiko.SSHException, OSError, EOFError) as error:
        if _NO_KEY in str(error):
            raise _not_let_in(host, error) from None
        raise BackendUnavailableError(
            f"{host.name} cannot be reached at {host.hostname}, port {host.port}: {error or type(error).__name__}",
            "A host that answers.",
            f"Check its name and the network: `ssh {host.name} true`.",
        ) from error


def _not_let_in(host: ResolvedHost, error: Exception) -> BackendUnavailableError:
    return BackendUnavailableError(
        f"{host.name} does not let {host.user!r} in: {error}",
        f"A key that it accepts; tried: {', '.join(host.key_files) or 'those of the agent'}.",
        f"Run `ssh {host.name} true` in a terminal until it asks for nothing; if it asks for nothing now, say "
        "`transport: openssh` in the profile.",
    )
