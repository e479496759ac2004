"""Taking secret values out of what a trial says."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable

MASK = b"***"
_SHORTEST = 4  # shorter values would tear ordinary text apart


def needles(values: Iterable[str]) -> list[bytes]:
    """All forms in which the values are looked for: as they are, and in base64; longest first."""
    found: set[bytes] = set()
    for value in values:
        raw = value.encode()
        if len(raw) >= _SHORTEST:
            found |= {raw, b64encode(raw), b64encode(raw).rstrip(b"=")}
            found |= {line.strip() for line in raw.splitlines() if len(line.strip()) >= _SHORTEST}
    return sorted(found, key=len, reverse=True)


class Redactor:
    """Masks secret values in a stream of bytes that comes in pieces of any size."""

    def __init__(self, values: Iterable[str]) -> None:
        self._needles = needles(values)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Give what may be shown by now; an end that could be the beginning of a secret is held back."""
        data = self._held + data
        for needle in self._needles:
            data = data.replace(needle, MASK)
        keep = max((_overlap(data, needle) for needle in self._needles), default=0)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def finish(self) -> bytes:
        """Give what was held back: no more comes."""
        held, self._held = self._held, b""
        return held

    def text(self, text: str) -> str:
        """Mask a whole text."""
        data = text.encode()
        for needle in self._needles:
            data = data.replace(needle, MASK)
        return data.decode(errors="replace")


def _overlap(data: bytes, needle: bytes) -> int:
    """Length of the longest end of `data` that is a proper beginning of `needle`."""
    for length in range(min(len(data), len(needle) - 1), 0, -1):
        if data.endswith(needle[:length]):
            return length
    return 0
