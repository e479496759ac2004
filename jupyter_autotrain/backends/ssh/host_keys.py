"""Host keys: their fingerprints, what is said of an unknown or changed one, and the explicit step that trusts one."""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
from pathlib import Path

from jupyter_autotrain.backends.ssh.host import ResolvedHost
from jupyter_autotrain.backends.ssh.transport import HostKey, HostKeyError


def fingerprint(key: HostKey) -> str:
    """The key's SHA-256 fingerprint, as OpenSSH writes it."""
    digest = hashlib.sha256(base64.b64decode(key.base64)).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def unknown(host: ResolvedHost, key_type: str, shown: str) -> HostKeyError:
    """A host that was never trusted; says which command trusts it."""
    return HostKeyError(
        f"The host key of {host.name} is not known: {key_type} {shown}.",
        "A key that you have trusted before.",
        "If that is the host's own fingerprint, run: "
        f"%autotrain backends trust {host.profile} {shlex.quote(host.trusted_as)} {shown}",
    )


def not_certified(name: str, key_type: str, shown: str) -> HostKeyError:
    """A host that an authority's certificate may make known, which paramiko does not read."""
    return HostKeyError(
        f"The host key of {name} is not known: {key_type} {shown}.",
        "That key in your known hosts; they name an authority, whose certificates only the OpenSSH program reads.",
        "Say `transport: openssh` in the profile.",
    )


def changed(host: ResolvedHost, key_type: str, shown: str) -> HostKeyError:
    """A host that has another key than the trusted one."""
    forget = shlex.join(("ssh-keygen", "-f", host.trust_file, "-R", host.key_name))
    return HostKeyError(
        f"The host key of {host.name} has changed: it is now {key_type} {shown}. Somebody may be listening in between.",
        f"The key in {' or '.join(host.known_hosts)}.",
        f"Ask who runs {host.name}. If the change was meant, remove the old key with `{forget}`.",
    )


def revoked(name: str, key_type: str, shown: str) -> HostKeyError:
    """A host that has a key that was taken back."""
    return HostKeyError(
        f"The host key of {name} is revoked: {key_type} {shown}.",
        "A key that your known hosts do not mark as @revoked.",
        f"Ask who runs {name}.",
    )


def trust(host: ResolvedHost, key: HostKey, expected: str) -> Path:
    """Add a host's key to the user's known ones, if it has the fingerprint that the user has confirmed.

    Gives the file that knows it now.

    Raises:
        HostKeyError: It has another one, or the user's configuration keeps none.
    """
    shown = fingerprint(key)
    if shown != expected.strip():
        raise HostKeyError(
            f"The host key of {host.name} is {key.type} {shown}.",
            f"The fingerprint {expected}.",
            "Nothing was trusted.",
        )
    if not host.trust_file:
        raise HostKeyError(
            f"Your SSH configuration keeps no known hosts for {host.name}.",
            "A file that its key can be added to.",
            f"Give it one in ~/.ssh/config, as in `Host {host.name}` and `UserKnownHostsFile ~/.ssh/known_hosts`.",
        )
    file = Path(host.trust_file)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "rb+") as known:
        line = f"{host.key_name} {key.type} {key.base64}\n".encode("ascii")
        before = known.read()
        if line not in before:
            known.write(line if before.endswith(b"\n") or not before else b"\n" + line)
    return file
