"""Files of known host keys, as OpenSSH reads them: patterns, hashed names, several keys, revoked ones, authorities.

paramiko's own reader knows neither patterns nor marks, and keeps one key of each type.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.backends.ssh.transport import HostKey

_REVOKED = "@revoked"
_AUTHORITY = "@cert-authority"
_HASHED = "|1|"
_LEAST_FIELDS = 3  # names, type, key


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """What the files say of one host.

    Attributes:
        keys: The keys that it may have.
        revoked: Those that nobody may have any more.
        has_authority: An authority's certificate would make another key known.
    """

    keys: tuple[HostKey, ...] = ()
    revoked: tuple[HostKey, ...] = ()
    has_authority: bool = False


def known_keys(files: Sequence[str], name: str) -> KnownKeys:
    """What files of known hosts say of a host; a file that cannot be read says nothing.

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
    """The mark and the key of each line that is about a host."""
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
