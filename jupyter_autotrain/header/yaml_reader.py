"""YAML text to a `Document`, with the line of every key and all faults: where the whole is not YAML, part by part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.events import (
    AliasEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from jupyter_autotrain.header.document import (
    LIMIT_BYTES,
    WHOLE_CHARACTERS,
    Document,
    Fault,
    KeyPath,
    Lines,
    PlainScalar,
    SourceLocation,
    half_character,
    shown,
)

TAB = "a tab before"  # so begins the fault of a tab in an indent
_DEEPEST = 20
# What ruamel.yaml says, as a person says it; by how it begins.
_PLAIN = MappingProxyType(
    {
        "found unexpected end of stream": "a quote is not closed",
        "expected ',' or ']'": "a `[` is not closed",
        "expected ',' or '}'": "a `{` is not closed",
        "expected '<document start>'": "a wrong indent above it",
        "mapping values are not allowed here": "one colon too many, or a wrong indent",
        "expected <block end>": "a wrong indent",
        "could not find expected ':'": "a colon is missing",
    }
)


def read(lines: Lines, source: str, folder: Path | None) -> Document:
    """Read one text up to the first place where it is not YAML; never raises."""
    return _Reader(lines, source, folder).read()


def given_twice(key: str, location: SourceLocation, first: SourceLocation) -> Fault:
    """Return the fault of a key that is there already."""
    return Fault(f"{shown(key)} is given twice (first on line {first.line})", "expected once", "remove one", location)


class _UnreadableError(Exception):
    """Stops the reading of one document at a place."""

    def __init__(self, found: str, expected: str, action: str, line: int) -> None:
        super().__init__(found)
        self.found = found
        self.expected = expected
        self.action = action
        self.line = line


class _Reader:
    """Builds plain data from YAML events, remembering lines."""

    def __init__(self, lines: Lines, source: str, folder: Path | None) -> None:
        self.lines = lines
        self.source = source
        self.folder = folder
        self.text = "\n".join(text for _, text in lines)
        self.document = Document()
        self.events: Iterator[Event] = iter(())

    def read(self) -> Document:
        try:
            self.events = filter(_is_content, YAML(typ="safe", pure=True).parse(self.text))
            self._top()
        except _UnreadableError as stop:
            self._fault(stop.found, stop.expected, stop.action, stop.line)
        except Exception as error:  # noqa: BLE001 - whatever the YAML reader trips over is a fault of the text
            self._fault(*_explain(error, self.text), _line_of(error))
        return self.document

    def _top(self) -> None:
        event = next(self.events, None)
        if event is None or (isinstance(event, ScalarEvent) and event.value == ""):
            return
        value = self._value(event, ())
        if not isinstance(value, dict):
            raise _UnreadableError(shown(value), "expected `key: value`", "put a colon after the key", _row(event))
        self.document.data = value
        if (more := next(self.events, None)) is not None:
            raise _UnreadableError("a second document", "expected one header", "remove it", _row(more))

    def _value(self, event: Event, path: KeyPath) -> object:
        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor is not None):
            raise _UnreadableError("an anchor or alias (& or *)", "expected the value itself", "quote it", _row(event))
        if len(path) > _DEEPEST:
            raise _UnreadableError("deeply nested brackets", "expected a few levels", "flatten it", _row(event))
        if isinstance(event, MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(path)
        assert isinstance(event, ScalarEvent)
        return self._scalar(event)

    def _scalar(self, event: ScalarEvent) -> str:
        if event.ctag is not None and str(event.ctag) not in {"", "!"}:
            raise _UnreadableError(
                f"the tag {shown(str(event.ctag))}", "expected no tags", "remove or quote it", _row(event)
            )
        text = _whole(event)
        return text if event.style else PlainScalar(text)

    def _mapping(self, path: KeyPath) -> dict[str, object]:
        found: dict[str, object] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                raise _UnreadableError("a list or mapping as a key", "expected a plain key", "quote it", _row(event))
            key = _whole(event)
            location = self._place(_row(event))
            here = (*path, key)
            if key in found:
                self.document.faults.append(given_twice(key, location, self.document.location(here)))
            self.document.locations[here] = location
            start = next(self.events)
            found[key] = self._call(start, self._value(start, here), pairs=True)
        return found

    def _sequence(self, path: KeyPath) -> list[object]:
        found: list[object] = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            here = (*path, len(found))
            self.document.locations[here] = self._place(_row(event))
            found.append(self._call(event, self._value(event, here), pairs=False))
        return found

    def _call(self, start: Event, value: object, *, pairs: bool) -> object:
        """Join `uniform(0, 1)`, which YAML splits at the comma inside `{}` and `[]`."""
        if not isinstance(value, PlainScalar) or (still_open := _opened(value)) <= 0:
            return value
        begin = start.start_mark.index
        end = start.end_mark.index
        while still_open > 0:
            event = next(self.events)
            if not isinstance(event, ScalarEvent):
                found = shown(self.text[begin:end])
                raise _UnreadableError(found, "expected `name(a, b)`", "close the bracket", _row(start))
            if pairs:
                next(self.events)
            still_open += _opened(self.text[end : event.end_mark.index])
            end = event.end_mark.index
        return PlainScalar(self.text[begin:end])

    def _place(self, row: int) -> SourceLocation:
        line = self.lines[min(row, len(self.lines) - 1)][0] if self.lines else 0
        return SourceLocation(line, self.source, self.folder)

    def _fault(self, found: str, expected: str, action: str, row: int) -> None:
        self.document.faults.append(Fault(found, expected, action, self._place(row)))


def _whole(event: ScalarEvent) -> str:
    """Return the text of a scalar, whose escapes may spell half a character."""
    text = str(event.value)
    if half := half_character(text):
        raise _UnreadableError(half, *WHOLE_CHARACTERS, _row(event))
    return text


def _opened(text: str) -> int:
    return text.count("(") - text.count(")")


def _is_content(event: Event) -> bool:
    return isinstance(
        event,
        ScalarEvent | AliasEvent | MappingStartEvent | MappingEndEvent | SequenceStartEvent | SequenceEndEvent,
    )


def _row(event: Event) -> int:
    return int(event.start_mark.line)


def _line_of(error: Exception) -> int:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return int(mark.line) if mark else 0


def _explain(error: Exception, text: str) -> tuple[str, str, str]:
    rows = text.split("\n")
    row = _line_of(error)
    line = rows[row].strip() if row < len(rows) else ""
    problem = str(getattr(error, "problem", "") or "").split("\n")[0]
    if row < len(rows) and "\t" in rows[row][: len(rows[row]) - len(line)]:
        return f"{TAB} {shown(line)}", "expected spaces", "indent it with spaces"
    found = f"{shown(line)} is not YAML" if line else "the text ends too early"
    if not problem:
        return found, "expected `key: value`", "check colons, quotes and brackets"
    known = next((plain for begin, plain in _PLAIN.items() if problem.startswith(begin)), problem)
    return f"{found} ({known})", "expected `key: value`", "check colons, quotes and brackets"


_UNREADABLE: Final = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_NEW_BLOCK: Final = re.compile(r"[^\s#\-\]})]")
_KEY_ALONE: Final = re.compile(r"([^\W\d]\w*)\s*:\s*(?:#.*)?")
_LEADING_TAB: Final = re.compile(r"^( *)\t")
_MOST_BLOCKS: Final = 100  # are read one by one
_DEEPEST_PART: Final = 3  # sections in sections are read part by part; each level reads the text once more


def load(lines: Lines, source: str = "", folder: Path | None = None) -> Document:
    """Read YAML given as (line number, text) pairs; never raises.

    Args:
        lines: The text.
        source: What to call it in faults; "" is a cell.
        folder: That of the file.
    """
    if fault := too_long(lines, source):
        return Document(faults=[fault])
    faults = _unreadable(lines, source)
    if faults:
        lines = [(number, _UNREADABLE.sub("", text)) for number, text in lines]
    document = _read(lines, source, folder)
    document.faults = [*faults, *document.faults]
    return document


def too_long(lines: Lines, source: str = "") -> Fault | None:
    """Return the fault of settings that are longer than any may be; arguments as `load`."""
    size_bytes = len("\n".join([text for _, text in lines]).encode("utf-8", "replace"))
    if size_bytes <= LIMIT_BYTES:
        return None
    found = f"a header of {size_bytes / 1000:.0f} kB"
    expected = f"expected at most {LIMIT_BYTES // 1000} kB"
    return Fault(found, expected, "keep data in the cell or in a file", SourceLocation(lines[0][0], source))


def _unreadable(lines: Lines, source: str) -> list[Fault]:
    faults: list[Fault] = []
    for number, text in lines:
        if bad := _UNREADABLE.search(text):
            found = f"the character U+{ord(bad.group()):04X}"
            faults.append(Fault(found, "expected printable text", "remove it", SourceLocation(number, source)))
    return faults


def _read(lines: Lines, source: str, folder: Path | None, depth: int = 0) -> Document:
    """Read the whole, or, so that one slip does not hide the others, each of its blocks."""
    whole = read(lines, source, folder)
    if not whole.faults or depth > _DEEPEST_PART:
        return whole
    if tabs := [fault for fault in whole.faults if fault.found.startswith(TAB)]:
        spaced = [(number, _LEADING_TAB.sub(r"\1  ", text)) for number, text in lines]
        document = _read(spaced, source, folder, depth + 1)
        document.faults = [*tabs, *document.faults]
        return document
    blocks = _blocks(lines)
    if 1 < len(blocks) <= _MOST_BLOCKS:
        document = _join([_read(block, source, folder, depth) for block in blocks])
    else:
        document = _section(lines, source, folder, depth)
    return document if document.faults else whole


def _blocks(lines: Lines) -> list[Lines]:
    """Return the text from each line that is not indented to the next such line."""
    starts = {i for i, (_, text) in enumerate(lines) if _NEW_BLOCK.match(text)}
    return [lines[a:b] for a, b in pairwise(sorted({0, len(lines)} | starts))]


def _section(lines: Lines, source: str, folder: Path | None, depth: int) -> Document:
    """Return what is indented below a key, read by itself; an empty document where it is no such text."""
    (number, first), *inner = lines
    key = _KEY_ALONE.fullmatch(first)
    indent = _indent_of(inner)
    if key is None or indent == 0:
        return Document()
    dedented = [(line, text[indent:]) for line, text in inner]
    below = _read(dedented, source, folder, depth + 1)
    locations = {(key[1], *path): location for path, location in below.locations.items()}
    locations[key[1],] = SourceLocation(number, source, folder)
    return Document({key[1]: below.data}, locations, below.faults)


def _indent_of(lines: Lines) -> int:
    """Return the columns by which a text is indented as a whole; 0 where a line stands left of the first."""
    indents: list[int] = []
    for _, text in lines:
        if text.strip() and not text.lstrip().startswith("#"):
            indents.append(len(text) - len(text.lstrip(" ")))
    return indents[0] if indents and min(indents) == indents[0] else 0


def _join(parts: Sequence[Document]) -> Document:
    whole = Document()
    for part in parts:
        whole.faults += part.faults
        for key in part.data.keys() & whole.data.keys():
            whole.faults.append(given_twice(key, part.location((key,)), whole.location((key,))))
        whole.data |= part.data
        whole.locations |= part.locations
    return whole
