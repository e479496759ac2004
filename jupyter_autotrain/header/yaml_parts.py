"""YAML text to a `Document` with all faults: where the whole is not YAML, each part of it is read alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from jupyter_autotrain.header.document import LIMIT_BYTES, Document, Lines
from jupyter_autotrain.header.faults import Fault, SourceLocation
from jupyter_autotrain.header.yaml_reader import TAB, given_twice, read

_UNREADABLE: Final = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_NEW_BLOCK: Final = re.compile(r"[^\s#\-\]})]")
_KEY_ALONE: Final = re.compile(r"([^\W\d]\w*)\s*:\s*(?:#.*)?")
_LEADING_TAB: Final = re.compile(r"^( *)\t")
_MOST_BLOCKS: Final = 100  # are read one by one
_DEEPEST: Final = 3  # sections in sections are read part by part; each level reads the text once more


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
    found = [(number, bad.group()) for number, text in lines if (bad := _UNREADABLE.search(text))]
    return [
        Fault(
            f"the character U+{ord(character):04X}",
            "expected printable text",
            "remove it",
            SourceLocation(number, source),
        )
        for number, character in found
    ]


def _read(lines: Lines, source: str, folder: Path | None, depth: int = 0) -> Document:
    """Read the whole, or, so that one slip does not hide the others, each of its blocks."""
    whole = read(lines, source, folder)
    if not whole.faults or depth > _DEEPEST:
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
    """The text from each line that is not indented to the next such line."""
    starts = {i for i, (_, text) in enumerate(lines) if _NEW_BLOCK.match(text)}
    return [lines[a:b] for a, b in pairwise(sorted({0, len(lines)} | starts))]


def _section(lines: Lines, source: str, folder: Path | None, depth: int) -> Document:
    """What is indented below a key, read by itself; an empty document where it is no such text."""
    (number, first), *inner = lines
    key = _KEY_ALONE.fullmatch(first)
    filled = [text for _, text in inner if text.strip() and not text.lstrip().startswith("#")]
    indents = [len(text) - len(text.lstrip(" ")) for text in filled]
    if key is None or not indents or min(indents) != indents[0] or indents[0] == 0:
        return Document()
    dedented = [(line, text[indents[0] :]) for line, text in inner]
    below = _read(dedented, source, folder, depth + 1)
    locations = {(key[1], *path): location for path, location in below.locations.items()}
    locations[key[1],] = SourceLocation(number, source, folder)
    return Document({key[1]: below.data}, locations, below.faults)


def _join(parts: Sequence[Document]) -> Document:
    whole = Document()
    for part in parts:
        whole.faults += part.faults
        for key in part.data.keys() & whole.data.keys():
            whole.faults.append(given_twice(key, part.location((key,)), whole.location((key,))))
        whole.data |= part.data
        whole.locations |= part.locations
    return whole
