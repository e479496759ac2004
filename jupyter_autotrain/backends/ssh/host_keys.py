"""Host keys: their fingerprints, what is said of an unknown or changed one, and the explicit step that trusts one."""

from __future__ import annotations

import base64
import hashlib
import shlex
from pathlib import Path

from jupyter_autotrain.backends.ssh import known_hosts
from jupyter_autotrain.backends.ssh.host import ResolvedHost
from jupyter_autotrain.backends.ssh.transport import HostKey, HostKeyError
from jupyter_autotrain.core import wire


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
    """Make a host's key the known one of its name, if it has the fingerprint that the user has confirmed.

    Other keys that the file has for that name are known no longer, as after `ssh-keygen -R`: a key may be changed
    since the old one was stolen. Gives the file that knows it now.

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
    file = Path(host.trust_file).resolve()  # it may be a link into a repository of settings
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    line = f"{host.key_name} {key.type} {key.base64}\n".encode("ascii")
    before = file.read_bytes() if file.exists() else b""
    kept = [each for each in before.splitlines(keepends=True) if not _is_replaced(each, host.key_name, key)]
    if kept and not kept[-1].endswith(b"\n"):
        kept[-1] += b"\n"
    after = b"".join(kept if line in kept else [*kept, line])
    if after != before:
        wire.write_atomically(str(file), after)
    return Path(host.trust_file)


def _is_replaced(line: bytes, name: str, key: HostKey) -> bool:
    """Return whether a line of known hosts gives that very name another key; patterns and marked lines stay."""
    text = line.decode(errors="replace")
    return known_hosts.names_exactly(text, name) and text.split()[1:3] != [key.type, key.base64]
