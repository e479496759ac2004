"""The masking of secret values in a trial's texts, as they are and in the encodings they travel in."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator

MASK = b"***"
_SHORTEST = 4  # shorter values would tear ordinary text apart
_SHORTEST_INSIDE = 8  # of the part of a base64 text that is sure to be there, whatever stands around the value
_START = 4
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~")


def secret_encodings(values: Iterable[str]) -> list[bytes]:
    """Return all forms in which the values are looked for, longest first.

    They are looked for as they are and line by line, escaped as in JSON and in Python, in hexadecimal, URL-encoded, and
    in base64, also inside a longer text, where a value begins at any of three places of a group.
    """
    found: set[bytes] = set()
    for value in values:
        raw = value.encode("utf-8", "surrogateescape")
        if len(raw) >= _SHORTEST:
            found |= {raw, *_encoded(raw), *_escaped(value)}
            found |= {line.strip() for line in raw.splitlines() if len(line.strip()) >= _SHORTEST}
    return sorted(found, key=lambda encoding: (-len(encoding), encoding))


def _escaped(value: str) -> Iterator[bytes]:
    if value.isprintable() and value.isascii() and not set("\"'\\") & set(value):
        return
    import json  # noqa: PLC0415 - only values that need it pay

    for text in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]):
        yield text.encode("utf-8", "surrogatepass")


def _encoded(raw: bytes) -> Iterator[bytes]:
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    upper = b"".join(bytes([c]) if c in _PLAIN else b"%%%02X" % c for c in raw)
    lower = b"".join(bytes([c]) if c in _PLAIN else b"%%%02x" % c for c in raw)
    for text in (upper, lower):
        yield from (text, text.replace(b"%20", b"+"), text.replace(b"%2F", b"/").replace(b"%2f", b"/"))
    for text in _in_base64(raw):
        yield from (text, text.replace(b"+", b"-").replace(b"/", b"_"))


def _in_base64(raw: bytes) -> Iterator[bytes]:
    """Yield the value's own text, and its part that is the same wherever it stands in a longer one.

    See RFC 4648, section 4.
    """
    yield from (b64encode(raw), b64encode(raw).rstrip(b"="))
    for before, spoilt in ((0, 0), (1, 2), (2, 3)):
        text = b64encode(bytes(before) + raw).rstrip(b"=")
        inside = text[spoilt : len(text) if (before + len(raw)) % 3 == 0 else -1]
        if len(inside) >= _SHORTEST_INSIDE:
            yield inside


class Redactor:
    """A mask for secret values in a stream of bytes that comes in pieces of any size."""

    def __init__(self, values: Iterable[str]) -> None:
        self._encodings = secret_encodings(values)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return the bytes that may be shown by now; an end that could be the beginning of a secret is held back."""
        data = self.redact_bytes(self._held + data)
        keep = max((_overlap(data, encoding) for encoding in self._encodings), default=0)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def finish(self) -> bytes:
        """Return the bytes that were held back: no more come."""
        held, self._held = self._held, b""
        return held

    def redact_bytes(self, data: bytes) -> bytes:
        """Mask bytes that are all there."""
        for encoding in self._encodings:
            data = data.replace(encoding, MASK)
        return data

    def text(self, text: str) -> str:
        """Mask a whole text."""
        if not self._encodings:
            return text
        return self.redact_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")

    def rename_below(self, folder: str) -> None:
        """Mask the names of the files and folders below a folder.

        Links are renamed, not followed.
        """
        for root, folders, files in os.walk(os.fsencode(folder), topdown=False) if self._encodings else ():
            for name in (*files, *folders):
                if (masked := self.redact_bytes(name)) != name:
                    _rename(root, name, masked)


def _rename(root: bytes, name: bytes, masked: bytes) -> None:
    target = masked
    more = 2
    while os.path.lexists(os.path.join(root, target)):
        target, more = b"%b-%d" % (masked, more), more + 1
    try:
        os.rename(os.path.join(root, name), os.path.join(root, target))
    except OSError:
        return  # it has gone meanwhile, or its folder cannot be written


def _overlap(data: bytes, encoding: bytes) -> int:
    """Return the length of the longest end of `data` that is a proper beginning of `encoding`."""
    start = max(0, len(data) - len(encoding) + 1)
    at = data.find(encoding[:_START], start)
    while at >= 0:
        if encoding.startswith(data[at:]):
            return len(data) - at
        at = data.find(encoding[:_START], at + 1)
    for length in range(min(len(data), len(encoding) - 1, _START - 1), 0, -1):
        if data.endswith(encoding[:length]):
            return length
    return 0
