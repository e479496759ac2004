"""Host keys: their fingerprints, what is said of an unknown or changed one, and the explicit step that trusts one.

Files of known host keys are read as OpenSSH reads them: patterns, hashed names, several keys, revoked ones,
authorities. paramiko's own reader knows neither patterns nor marks, and keeps one key of each type.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.agent import wire
from jupyter_autotrain.backends.ssh.host import ResolvedHost
from jupyter_autotrain.backends.ssh.transport import HostKey, HostKeyError

_REVOKED = "@revoked"
_AUTHORITY = "@cert-authority"
_HASHED = "|1|"
_LEAST_FIELDS = 3  # names, type, key


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """The keys that files of known hosts give for one host.

    Attributes:
        keys: The keys that it may have.
        revoked: Those that nobody may have any more.
        has_authority: An authority's certificate would make another key known.
    """

    keys: tuple[HostKey, ...] = ()
    revoked: tuple[HostKey, ...] = ()
    has_authority: bool = False


def known_keys(files: Sequence[str], name: str) -> KnownKeys:
    """Return the keys that files of known hosts give for a host; a file that cannot be read gives none.

    Args:
        files: Their paths.
        name: What the host's key is filed under.
    """
    found: dict[str, list[HostKey]] = {"": [], _REVOKED: [], _AUTHORITY: []}
    for mark, key in _lines_about(files, name.lower()):
        found.setdefault(mark, []).append(key)
    revoked = found[_REVOKED]
    keys = [key for key in found[""] if key not in revoked]
    return KnownKeys(tuple(keys), tuple(revoked), bool(found[_AUTHORITY]))


def _lines_about(files: Sequence[str], name: str) -> Iterator[tuple[str, HostKey]]:
    """Yield the mark and the key of each line that is about a host."""
    for file in files:
        try:
            text = Path(file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for line in text.splitlines():
            fields = line.split()
            mark = fields.pop(0) if line.startswith("@") else ""
            if len(fields) >= _LEAST_FIELDS and not fields[0].startswith("#") and _matches(fields[0], name):
                yield mark, HostKey(fields[1], fields[2])


def names_exactly(line: str, name: str) -> bool:
    """Return whether a line without a mark is about a host by its name, not by a pattern that others fit, too."""
    fields = line.split()
    if len(fields) < _LEAST_FIELDS or fields[0][0] in "@#" or set(fields[0]) & set("*?!"):
        return False
    return _matches(fields[0], name.lower())


def _matches(patterns: str, name: str) -> bool:
    is_matched = False
    for pattern in patterns.lower().split(",") if not patterns.startswith(_HASHED) else (patterns,):
        if pattern.startswith("!"):
            if _fits(pattern[1:], name):
                return False
        elif _is_hash_of(pattern, name) if pattern.startswith(_HASHED) else _fits(pattern, name):
            is_matched = True
    return is_matched


def _fits(pattern: str, name: str) -> bool:
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, name) is not None


def _is_hash_of(pattern: str, name: str) -> bool:
    salt, _, digest = pattern.removeprefix(_HASHED).partition("|")
    try:
        made = hmac.new(base64.b64decode(salt), name.encode(), hashlib.sha1).digest()
    except binascii.Error:
        return False
    return base64.b64encode(made).decode() == digest


def fingerprint(key: HostKey) -> str:
    """Return the key's SHA-256 fingerprint, as OpenSSH writes it."""
    digest = hashlib.sha256(base64.b64decode(key.base64)).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def unknown(host: ResolvedHost, key_type: str, shown: str) -> HostKeyError:
    """Return the error of a host that was never trusted, with the command that trusts it."""
    return HostKeyError(
        f"The host key of {host.name} is not known: {key_type} {shown}.",
        "A key that you have trusted before.",
        "If that is the host's own fingerprint, run: "
        f"%autotrain backends trust {host.profile} {shlex.quote(host.trusted_as)} {shown}",
    )


def not_certified(name: str, key_type: str, shown: str) -> HostKeyError:
    """Return the error of a host that only an authority's certificate may make known.

    paramiko does not read such a certificate.
    """
    return HostKeyError(
        f"The host key of {name} is not known: {key_type} {shown}.",
        "That key in your known hosts; they name an authority, whose certificates only the OpenSSH program reads.",
        "Say `transport: openssh` in the profile.",
    )


def changed(host: ResolvedHost, key_type: str, shown: str) -> HostKeyError:
    """Return the error of a host that has another key than the trusted one."""
    forget = shlex.join(("ssh-keygen", "-f", host.trust_file, "-R", host.key_name))
    return HostKeyError(
        f"The host key of {host.name} has changed: it is now {key_type} {shown}. Somebody may be listening in between.",
        f"The key in {' or '.join(host.known_hosts)}.",
        f"Ask who runs {host.name}. If the change was meant, remove the old key with `{forget}`.",
    )


def revoked(name: str, key_type: str, shown: str) -> HostKeyError:
    """Return the error of a host whose key was taken back."""
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
    return names_exactly(text, name) and text.split()[1:3] != [key.type, key.base64]
