"""Settings as read from one source: plain data, the line of every key, and the faults found so far.

Unquoted scalars stay text (`PlainScalar`) until the key they were written for says what is meant: so `1e-4` is a number
where a number is meant, `3.10` stays text where text is meant, and `yes`, `on` and `12:30:00` are never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from jupyter_autotrain.agent.credentials import holds_credential
from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import HeaderError

KeyPath = tuple[str | int, ...]
SHOWN = 6  # lines of a notebook's error
_TOKEN = re.compile(r"(?:hf_|gh[pousr]_|github_pat_|glpat-|sk[-_]|xox[abp]-|AKIA|AIza|eyJ)[\w\-]{12,}|\w{24,}")
_FORM = re.compile(r"(?:hf_|gh[pousr]_|github_pat_|glpat-|sk[-_]|xox[abp]-|AKIA|AIza|eyJ)")
_READ_CHARS = 400
_SHOWN_CHARS = 40


def dotted(path: KeyPath) -> str:
    """Return a path of keys as people write it, such as `resources.gpus`."""
    return ".".join(map(str, path))


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where something was written: a line (from 1; 0: none) of a source ("" is the cell itself).

    Attributes:
        folder: That of the file, to which relative paths in it refer; None: the working folder.
        path: The keys that lead there, for forms that show a fault at its field.
    """

    line: int = 0
    source: str = ""
    folder: Path | None = field(default=None, compare=False)
    path: KeyPath = field(default=(), compare=False)

    def __str__(self) -> str:
        return " ".join(filter(None, (self.source, f"line {self.line}" if self.line else "")))


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, one line of text."""

    found: str
    expected: str = ""
    action: str = ""
    location: SourceLocation = field(default_factory=SourceLocation)

    def __str__(self) -> str:
        text = "; ".join(part.rstrip(".") for part in (self.found, self.expected, self.action) if part)
        return f"{self.location}: {text}" if str(self.location) else text


class UnfitError(ValueError):
    """A value that its key cannot take; becomes a `Fault` with the key's line.

    Args:
        expected: What the key takes.
        action: What to do next.
        found: What was found, where the value itself must not be shown.
        at: Where inside the value the fault lies.
    """

    def __init__(self, expected: str, action: str = "", *, found: str = "", at: KeyPath = ()) -> None:
        super().__init__(expected)
        self.expected = expected
        self.action = action
        self.found = found
        self.at = at


def combined_error(faults: Iterable[Fault]) -> HeaderError:
    """One error for all faults, in the order of their lines; six lines at most are shown."""
    lines = list(map(str, in_order(faults)))
    shown = lines if len(lines) <= SHOWN else [*lines[: SHOWN - 1], f"and {len(lines) - SHOWN + 1} more"]
    return HeaderError("\n".join(shown), faults=tuple(lines))


def in_order(faults: Iterable[Fault]) -> list[Fault]:
    """Return the faults by their lines, each once; those of the cell before those of files."""
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.location.source, fault.location.line))


def expected_instead(word: str, known: Sequence[str]) -> str:
    """Return what was expected instead of an unknown word: the nearest one, else all of them."""
    near = closest_match(word, known)
    return f"did you mean {near!r}?" if near else f"expected one of {', '.join(known)}"


def looks_secret(text: str) -> bool:
    """Return True when a text has the form of a token or key rather than of a name."""
    match = _TOKEN.fullmatch(text)
    return holds_credential(text) or (match is not None and _is_token(match))


def _is_token(match: re.Match[str]) -> bool:
    """Return True for a known form, and for a long word of small and capital letters and digits."""
    text = match.group()
    mixed = any(map(str.islower, text)) and any(map(str.isupper, text)) and any(map(str.isdigit, text))
    return _FORM.match(text) is not None or mixed


def shown(value: object) -> str:
    """Return a value in at most 40 characters on one line; what looks like a secret is left out."""
    text = _written(value)
    if len(text) > _READ_CHARS:
        text = re.sub(r"[\w\-]+\Z", "", text[:_READ_CHARS]) + "..."  # the rest of a token may be cut off with it
    text = _TOKEN.sub(lambda match: "***" if _is_token(match) else match.group(), text)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 3]}..."


def _written(value: object) -> str:
    if isinstance(value, str):
        return repr(str(value[: 2 * _READ_CHARS]))
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - the value is the user's, and so is its repr
        return f"a {type(value).__name__}"


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
WHOLE_CHARACTERS = ("expected whole characters", "write it out, or remove it")


def half_character(text: str) -> str:
    """Name the half of a pair of UTF-16 that a text holds, which no file or host takes; "" where it holds none."""
    found = _HALF.search(text)
    return f"a lone surrogate (U+{ord(found[0]):04X})" if found else ""


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
    """Return what unquoted scalars are when no key says otherwise: true/false, null, numbers, else text."""
    if isinstance(value, PlainScalar):
        return _resolve_scalar(value)
    if isinstance(value, list | tuple):
        return list(map(resolve, value))
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
