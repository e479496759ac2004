"""Host keys: their fingerprints, what is said of an unknown or changed one, and the explicit step that trusts one."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

from jupyter_autotrain.backends.ssh.host import ResolvedHost
from jupyter_autotrain.backends.ssh.transport import HostKey, HostKeyError


def fingerprint(key: HostKey) -> str:
    """The key's SHA-256 fingerprint, as OpenSSH writes it."""
    digest = hashlib.sha256(base64.b64decode(key.base64)).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def unknown(name: str, profile: str, key_type: str, shown: str) -> HostKeyError:
    """A host that was never trusted; says which command trusts it."""
    return HostKeyError(
        f"The host key of {name} is not known: {key_type} {shown}.",
        "A key that you have trusted before.",
        f"If that is the host's own fingerprint, run: %autotrain backends trust {profile} {name} {shown}",
    )


def changed(name: str, key_type: str, shown: str, files: tuple[str, ...]) -> HostKeyError:
    """A host that has another key than the trusted one."""
    return HostKeyError(
        f"The host key of {name} has changed: it is now {key_type} {shown}. Somebody may be listening in between.",
        f"The key in {' or '.join(files)}.",
        f"Ask who runs {name}. If the change was meant, remove the old key with `ssh-keygen -R {name}`.",
    )


def trust(host: ResolvedHost, key: HostKey, expected: str) -> Path:
    """Add a host's key to the user's known ones, if it has the fingerprint that the user has confirmed.

    Gives the file that knows it now.

    Raises:
        HostKeyError: It has another one.
    """
    shown = fingerprint(key)
    if shown != expected.strip():
        raise HostKeyError(
            f"The host key of {host.name} is {key.type} {shown}.",
            f"The fingerprint {expected}.",
            "Nothing was trusted.",
        )
    file = Path(host.known_hosts[0])
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "rb+") as known:
        line = f"{host.key_name} {key.type} {key.base64}\n".encode("ascii")
        before = known.read()
        if line not in before:
            known.write(line if before.endswith(b"\n") or not before else b"\n" + line)
    return file
