"""The view that a terminal gives of printed lines: carriage returns, backspaces, erasing and colours take effect.

All other escape sequences and control characters are left out. Lines come back as text whose only sequences are
`ESC [ codes m` (ECMA-48, select graphic rendition), each complete in itself, and each line ends in the plain style.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from jupyter_autotrain.core.text_format import count

MOST_CHARACTERS: Final = 4_000
_READ_CHARACTERS: Final = 65_536
_REWRITES: Final = 8
_MOST_CODES: Final = 32
_SPECIAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL = re.compile(
    r"(\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f])"
)
_ATTRIBUTES: Final = frozenset({1, 2, 3, 4, 7, 9})
_DEFAULT_COLOR: Final = 39
_COLORS: Final = frozenset({*range(30, 38), *range(90, 98), _DEFAULT_COLOR})
_DEFAULT_BACKGROUND: Final = 49
_BACKGROUNDS: Final = frozenset({*range(40, 48), *range(100, 108), _DEFAULT_BACKGROUND})
_ENDED_BY: Final = {22: (1, 2), 23: (3,), 24: (4,), 27: (7,), 29: (9,)}


@dataclass(frozen=True, slots=True)
class Style:
    """The look of characters: the codes of attributes (bold 1, dim 2 ...), of the colour and of the background."""

    attributes: frozenset[int] = frozenset()
    color: str = ""
    background: str = ""

    @property
    def codes(self) -> str:
        """The codes that give this style from the plain one; "" for the plain style."""
        codes = [*map(str, sorted(self.attributes)), self.color, self.background]
        return ";".join(filter(None, codes))


@dataclass(slots=True)
class _LineBuffer:
    """The cells of one line, and the column of the cursor."""

    cells: list[tuple[str, Style]] = field(default_factory=list)
    cursor: int = 0

    def write(self, text: str, style: Style) -> None:
        self.cells[self.cursor : self.cursor + len(text)] = [(character, style) for character in text]
        self.cursor += len(text)

    def control(self, sequence: str) -> None:
        if sequence == "\r":
            self.cursor = 0
        elif sequence == "\b":
            self.cursor = max(self.cursor - 1, 0)
        elif sequence in {"\x1b[K", "\x1b[0K"}:
            del self.cells[self.cursor :]
        elif sequence == "\x1b[2K":
            self.cells = [(" ", Style())] * self.cursor

    def text(self) -> str:
        parts = []
        current = Style()
        for character, style in self.cells[:MOST_CHARACTERS]:
            if style != current:
                parts.append(f"\x1b[{';'.join(filter(None, ('0', style.codes)))}m")
                current = style
            parts.append(character)
        parts.append("\x1b[0m" if current != Style() else "")
        return "".join(parts) + _left_out(len(self.cells))


def rendered(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines as a terminal shows them; a colour continues in the next line. Linear in the text."""
    style = Style()
    for line in lines:
        if style == Style() and not _SPECIAL.search(line):
            yield line[:MOST_CHARACTERS] + _left_out(len(line))
            continue
        buffer = _LineBuffer()
        for sequence, text in _sequences(line[-_READ_CHARACTERS:]):
            if sequence.startswith("\x1b[") and sequence.endswith("m"):
                style = _with_codes(style, sequence[2:-1])
            buffer.control(sequence)
            buffer.write(text, style)
        yield buffer.text()


def _sequences(line: str) -> Iterator[tuple[str, str]]:
    """Yield each control sequence with the text after it.

    Of a line that was rewritten often, only the last rewrites count.
    """
    written = line.rstrip("\r").rsplit("\r", _REWRITES)
    parts = _CONTROL.split("\r".join(written[-_REWRITES:]))
    yield "", parts[0]
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _left_out(characters: int) -> str:
    left = characters - MOST_CHARACTERS
    return f" ... {count(left, 'character')} left out" if left > 0 else ""


def _with_codes(style: Style, codes: str) -> Style:
    numbers = [int(code) if code.isdecimal() else 0 for code in re.split("[;:]", codes)[:_MOST_CODES]]
    at = 0
    while at < len(numbers):
        code = numbers[at]
        if code in {38, 48}:
            taken, color = _extended_color(numbers[at:])
            style = replace(style, color=color) if code == 38 else replace(style, background=color)
            at += taken
        else:
            style = _with_code(style, code)
            at += 1
    return style


def _extended_color(numbers: Sequence[int]) -> tuple[int, str]:
    """Return how many codes a colour takes, and its text.

    It is one of 256 (`38;5;n`), or one of red, green and blue (`38;2;r;g;b`).
    """
    kind = numbers[1] if len(numbers) > 1 else 0
    taken = {5: 3, 2: 5}.get(kind, len(numbers))
    color = numbers[:taken]
    complete = len(color) == taken and max(color[1:], default=256) <= 255
    return taken, ";".join(map(str, color)) if complete else ""


def _with_code(style: Style, code: int) -> Style:
    if code == 0:
        return Style()
    if code in _ATTRIBUTES:
        return replace(style, attributes=style.attributes | {code})
    if code in _ENDED_BY:
        return replace(style, attributes=style.attributes.difference(_ENDED_BY[code]))
    if code in _COLORS:
        return replace(style, color="" if code == _DEFAULT_COLOR else str(code))
    if code in _BACKGROUNDS:
        return replace(style, background="" if code == _DEFAULT_BACKGROUND else str(code))
    return style
