"""Settings as read from one source: plain data, the line of every key, and the faults found so far.

Unquoted scalars stay text (`PlainScalar`) until the key they were written for says what is meant: so `1e-4` is a number
where a number is meant, `3.10` stays text where text is meant, and `yes`, `on` and `12:30:00` are never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.header.faults import Fault, KeyPath, SourceLocation

Lines = Sequence[tuple[int, str]]
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][\d_]*)")
_FLOAT = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
NULLS = frozenset({"~", "null", "Null", "NULL"})
_WORDS: Mapping[str, JsonValue] = {
    "": None, **dict.fromkeys(NULLS),
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_LONGEST_NUMBER = 40
LIMIT_BYTES = 65_536  # of one header or settings file
_HALF = re.compile("[\ud800-\udfff]")
WHOLE_CHARACTERS = ("expected whole characters", "write it out, or take it away")


def half_character(text: str) -> str:
    """Name the half of a pair of UTF-16 that a text holds, which no file or host takes; "" where it holds none."""
    found = _HALF.search(text)
    return f"half a character (U+{ord(found[0]):04X})" if found else ""


class PlainScalar(str):
    """An unquoted scalar as written."""

    __slots__ = ()


@dataclass(slots=True)
class Document:
    """One source of settings, read: its data, where each path of it was written, and what was wrong."""

    data: dict[str, object] = field(default_factory=dict)
    locations: dict[KeyPath, SourceLocation] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def location(self, path: KeyPath) -> SourceLocation:
        """Where a path was written, else the nearest path around it."""
        known = path
        while known and known not in self.locations:
            known = known[:-1]
        return replace(self.locations.get(known, SourceLocation()), path=path)


def resolve(value: object) -> object:
    """What unquoted scalars are when no key says otherwise: true/false, null, numbers, else text."""
    if isinstance(value, PlainScalar):
        return _resolve_scalar(value)
    if isinstance(value, list | tuple):
        return [resolve(item) for item in value]
    if isinstance(value, dict):
        return {key: resolve(item) for key, item in value.items()}
    return value


def _resolve_scalar(text: PlainScalar) -> JsonValue:
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _LONGEST_NUMBER and _INTEGER.fullmatch(text):
        return int(text)
    if len(text) <= _LONGEST_NUMBER and _FLOAT.fullmatch(text) and not re.match(r"[-+]?0\d", text):
        return float(text)
    return str(text)
