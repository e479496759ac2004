"""Faults of a header: where, what was found, what was expected, what to do. Gathered, then raised at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.errors import HeaderError

Path = tuple[str | int, ...]
SHOWN = 6  # lines of a notebook's error
_TOKEN = re.compile(
    r"(?:hf_|gh[pousr]_|github_pat_|glpat-|sk[-_]|xox[abp]-|AKIA|AIza|eyJ)[\w\-]{12,}|(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)\w{24,}"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written: a line (from 1; 0: none) of a source ("" is the cell itself)."""

    line: int = 0
    source: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.source, f"line {self.line}" if self.line else "") if part)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, one line of text."""

    found: str
    expected: str = ""
    action: str = ""
    place: Place = field(default_factory=Place)

    def __str__(self) -> str:
        text = "; ".join(part.rstrip(".") for part in (self.found, self.expected, self.action) if part)
        return f"{self.place}: {text}" if str(self.place) else text


class UnfitError(ValueError):
    """A value that its key cannot take; becomes a `Fault` with the key's line.

    Args:
        expected: What the key takes.
        action: What to do next.
        found: What was found, where the value itself must not be shown.
        at: Where inside the value the fault lies.
    """

    def __init__(self, expected: str, action: str = "", *, found: str = "", at: Path = ()) -> None:
        super().__init__(expected)
        self.expected, self.action, self.found, self.at = expected, action, found, at


def gather(faults: Iterable[Fault]) -> HeaderError:
    """One error for all faults, in the order of their lines; six lines at most are shown."""
    unique = sorted(dict.fromkeys(faults), key=lambda fault: (fault.place.source, fault.place.line))
    lines = [str(fault) for fault in unique]
    shown = lines if len(lines) <= SHOWN else [*lines[: SHOWN - 1], f"and {len(lines) - SHOWN + 1} more"]
    return HeaderError("\n".join(shown), faults=tuple(lines))


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like `word`, or ""; letter case does not count."""
    by_fold = {name.casefold(): name for name in known}
    found = difflib.get_close_matches(word.casefold(), by_fold, n=1, cutoff=0.6)
    return by_fold[found[0]] if found else ""


def meant(word: str, known: Sequence[str]) -> str:
    """What was expected instead of an unknown word: the nearest one, else all of them."""
    near = nearest(word, known)
    return f"did you mean {near!r}?" if near else f"expected one of {', '.join(known)}"


def looks_secret(text: str) -> bool:
    """True when a text has the form of a token or key rather than of a name."""
    return _TOKEN.fullmatch(text) is not None


def shown(value: object) -> str:
    """A value in at most 40 characters on one line; what looks like a secret is left out."""
    text = _TOKEN.sub("***", repr(str(value)) if isinstance(value, str) else repr(value))
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= 40 else f"{text[:37]}..."
