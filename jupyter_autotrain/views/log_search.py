"""The search for text in all that a trial has printed, as a terminal shows it, in bounded memory."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, Final

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.views.terminal_text import MOST_CHARACTERS as SHOWN_CHARACTERS
from jupyter_autotrain.views.terminal_text import rendered

MOST_CHARACTERS: Final = 200  # of what is looked for
MOST_MATCHES: Final = 100_000
NOTHING_FOUND: Final[JsonObject] = {"total": 0, "match": 0, "text": "", "left_out": "", "place": 0}
_LINES_AROUND: Final = 100
_SHOWN_BYTES: Final = 32_768  # before and after the match
_BLOCK_BYTES: Final = 1 << 20
_COLORS = re.compile(r"\x1b\[[\d;]*m")
_CONTROLS: Final = bytes({*range(32), 127} - set(b"\t\n"))
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


@dataclass(slots=True)
class _Matches:
    """The lines that hold a match: where each begins, which line it is (from 0), and how many matches end with it."""

    begins: array[int] = field(default_factory=lambda: array("q"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    totals: array[int] = field(default_factory=lambda: array("q"))

    @property
    def total(self) -> int:
        return self.totals[-1] if self.totals else 0

    def add(self, begin: int, line: int, matches: int) -> None:
        if matches:
            self.begins.append(begin)
            self.lines.append(line)
            self.totals.append(self.total + matches)


def search_json(directory: Path, stream: str, text: str, match: int) -> JsonObject:
    """Return one match of a text with the lines around it; small and capital letters are the same.

    Args:
        directory: The directory of the trial's attempt.
        stream: The name of the stream; checked by the caller.
        text: What is looked for, in a line.
        match: Which match, from 1 on; one beyond the last is the last.

    Returns:
        `total`: how many matches there are, 100,000 at most; `match`: the number of the one that is shown, 0 for none;
        `text`: the lines around it; `left_out`: what precedes them, in words; `place`: the number of matches in `text`
        that precede it.

    Raises:
        OSError: Something lies there that is no regular file.
    """
    pattern = re.compile(re.escape(text), re.IGNORECASE)
    try:
        file = files.open_regular(directory, stream)
    except OSError as error:
        if files.is_absent(error):
            return NOTHING_FOUND
        raise
    with file:
        found = _all_matches(file, text, pattern)
        return _shown(file, pattern, found, min(match, found.total)) if found.total else NOTHING_FOUND


def _all_matches(file: BinaryIO, text: str, pattern: re.Pattern[str]) -> _Matches:
    found = _Matches()
    line = 0
    for begin, block in _blocks(file):
        if not _may_match(block, text, pattern):
            line += block.count(b"\n")
            continue
        rows = _lines(block)
        begins = accumulate(map(len, rows), initial=begin)
        for number, (row, row_begin) in enumerate(zip(rows, begins, strict=False), line):
            found.add(row_begin, number, len(pattern.findall(_plain(row))))
        line += len(rows)
        if found.total >= MOST_MATCHES:
            break
    return found


def _may_match(block: bytes, text: str, pattern: re.Pattern[str]) -> bool:
    """Return whether lines have to be looked at one by one; where they are shown as they are, the block tells it."""
    if len(block.translate(None, _CONTROLS)) < len(block) or _has_long_line(block):
        return True
    if text.isascii():
        return text.lower().encode() in block.lower()
    return pattern.search(block.decode("utf-8", errors="replace")) is not None


def _has_long_line(block: bytes) -> bool:
    """Return whether a line may have more characters than are shown of it."""
    begin = 0
    while len(block) - begin > SHOWN_CHARACTERS:
        begin = block.rfind(b"\n", begin, begin + SHOWN_CHARACTERS + 1) + 1
        if not begin:
            return True
    return False


def _blocks(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Give whole lines, about a megabyte at a time, and where they begin; a line longer than that comes in parts."""
    begin = 0
    rest = b""
    while data := file.read(_BLOCK_BYTES):
        block = rest + data
        size = block.rfind(b"\n") + 1 or len(block)
        yield begin, block[:size]
        begin += size
        rest = block[size:]
    if rest:
        yield begin, rest


def _lines(block: bytes) -> list[bytes]:
    return _LINE.findall(block)


def _plain(row: bytes) -> str:
    """Return a line without its colours."""
    (shown,) = rendered([row.rstrip(b"\n").decode("utf-8", errors="replace")])
    return _COLORS.sub("", shown)


def _shown(file: BinaryIO, pattern: re.Pattern[str], found: _Matches, match: int) -> JsonObject:
    """Return the match of that number, from 1 on."""
    at = bisect_left(found.totals, match)
    line = found.lines[at]
    before, after = _rows_around(file, found.begins[at])
    rows = [*before, *after]
    total_before = found.totals[at - 1] if at else 0
    place = sum(len(pattern.findall(_plain(row))) for row in before) + match - total_before - 1
    text = "\n".join(rendered(row.rstrip(b"\n").decode("utf-8", errors="replace") for row in rows))
    left = line - len(before)
    left_out = count(left, "line") if left else ""
    return {"total": found.total, "match": match, "text": text, "left_out": left_out, "place": place}


def _rows_around(file: BinaryIO, begin: int) -> tuple[list[bytes], list[bytes]]:
    """Return the lines before an offset at which one begins, and that one with the lines after it."""
    first = max(begin - _SHOWN_BYTES, 0)
    file.seek(first)
    before = _lines(file.read(begin - first))[1 if first else 0 :]
    match, *after = _lines(file.read(_BLOCK_BYTES))
    kept = [match]
    left_bytes = _SHOWN_BYTES
    for row in after[:_LINES_AROUND]:
        left_bytes -= len(row)
        if left_bytes < 0:
            break
        kept.append(row)
    return before[-_LINES_AROUND:], kept
