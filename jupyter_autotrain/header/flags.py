"""Flags on the magic line: `%%autotrain [NAME] [--backend B] [-j N] [--wait] [--check] [--dry-run] [-f FILE]`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jupyter_autotrain.header.document import Document, PlainScalar
from jupyter_autotrain.header.faults import Fault, KeyPath, SourceLocation, expected_instead, shown

_MAGIC_LINE = SourceLocation(1)
_LONGEST_LINE = 4_096


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its spellings, the header key it sets (empty: none), whether a value follows, and what it does.

    `text` is empty where it does what its key does.
    """

    spellings: tuple[str, ...]
    path: KeyPath = ()
    takes_value: bool = True
    text: str = ""


FLAGS: Sequence[Flag] = (
    Flag(("--backend",), ("backend",)),
    Flag(("--name",), ("name",)),
    Flag(("--gpus",), ("resources", "gpus")),
    Flag(("--gpu-memory",), ("resources", "gpu_memory")),
    Flag(("--cpus",), ("resources", "cpus")),
    Flag(("--memory",), ("resources", "memory")),
    Flag(("--concurrency", "-j"), ("concurrency",)),
    Flag(("--trials",), ("trials",)),
    Flag(("--objective",), ("objective",)),
    Flag(("--tuner",), ("tuner",)),
    Flag(("--early-stop",), ("early_stop",)),
    Flag(("--timeout",), ("timeout",)),
    Flag(("--seed",), ("seed",)),
    Flag(("--retries",), ("retries",)),
    Flag(("--on-rerun",), ("on_rerun",)),
    Flag(("--file", "-f"), text="Settings from a file."),
    Flag(("--wait",), takes_value=False, text="Wait until the experiment ends."),
    Flag(("--check",), takes_value=False, text="Say in a few lines what would be sent and what differs."),
    Flag(("--dry-run",), takes_value=False, text="Show all that would be sent, and send nothing."),
)


@dataclass(frozen=True, slots=True)
class Flags:
    """What the line sets besides header keys."""

    wait: bool = False
    check: bool = False
    dry_run: bool = False
    file: str = ""


def spellings() -> list[str]:
    """All flags."""
    return [spelling for flag in FLAGS for spelling in flag.spellings]


def read_line(line: str) -> tuple[Flags, Document]:
    """Read the magic line into flags and settings; faults are in the document."""
    document = Document()
    if len(line) > _LONGEST_LINE:
        found = f"a magic line of {len(line)} characters"
        document.faults.append(
            Fault(found, f"expected at most {_LONGEST_LINE}", "write a header below it", _MAGIC_LINE)
        )
        return Flags(), document
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        document.faults.append(Fault(f"{shown(line)}: {error}", "expected closed quotes", "close them", _MAGIC_LINE))
        return Flags(), document
    options: dict[str, str] = {}
    for flag, value in _pairs(words, document):
        if flag.path:
            _without_nulls(document, flag, value)
        else:
            options[flag.spellings[0]] = value
    flags = Flags("--wait" in options, "--check" in options, "--dry-run" in options, options.get("--file", ""))
    return flags, document


def _pairs(words: Sequence[str], document: Document) -> Iterator[tuple[Flag, str]]:
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if not word.startswith("-") or word == "-":
            yield Flag(("NAME",), ("name",)), word
            continue
        key, given, value = _parted(word)
        flag = next((flag for flag in FLAGS if key in flag.spellings), None)
        if flag is None:
            document.faults.append(_unknown(key))
        elif flag.takes_value and not given and not rest:
            document.faults.append(Fault(f"{key} without a value", f"expected {key} VALUE", "", _MAGIC_LINE))
        elif not flag.takes_value and given:
            document.faults.append(Fault(f"{key} with a value", f"expected {key} alone", "", _MAGIC_LINE))
        else:
            yield flag, value if given or not flag.takes_value else _value(flag, rest)


def _unknown(key: str) -> Fault:
    return Fault(f"unknown flag {shown(key)}", expected_instead(key, spellings()), location=_MAGIC_LINE)


def _value(flag: Flag, rest: list[str]) -> str:
    value = rest.pop()
    if flag.path == ("objective",) and value in {"maximize", "minimize"} and rest and not rest[-1].startswith("-"):
        value = f"{value} {rest.pop()}"
        while value.count("(") > value.count(")") and rest:
            value = f"{value} {rest.pop()}"
    return value


def _parted(word: str) -> tuple[str, bool, str]:
    """`--gpus=2` and `-j2` as key, whether a value was given, value."""
    if word.startswith("--"):
        key, equals, value = word.partition("=")
        return key, bool(equals), value
    return word[:2], len(word) > 2, word[2:].removeprefix("=")


def _without_nulls(document: Document, flag: Flag, value: str) -> None:
    inner = document.data
    for part in flag.path[:-1]:
        inner = inner.setdefault(str(part), {})  # type: ignore[assignment]  # sections of flags are mappings
    key = str(flag.path[-1])
    if key in inner:
        found = f"{flag.spellings[0]} {value}: {key} was given before as {shown(inner[key])}"
        document.faults.append(Fault(found, "expected one", "remove one", _MAGIC_LINE))
    inner[key] = PlainScalar(value)
    for i in range(1, len(flag.path) + 1):
        document.locations[flag.path[:i]] = _MAGIC_LINE
