"""What a terminal would show of printed lines: carriage returns, backspaces, erasing and colours are obeyed.

All other escape sequences and control characters are left out. Lines come back as text whose only sequences are
`ESC [ codes m` (ECMA-48, select graphic rendition), each complete in itself, and each line ends in the plain style.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from jupyter_autotrain.core.wording import count

MOST_CHARACTERS: Final = 4_000
_READ_CHARACTERS: Final = 65_536
_REWRITES: Final = 8
_SPECIAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL = re.compile(
    r"(\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f])"
)
_ENDED_BY: Final = {22: (1, 2), 23: (3,), 24: (4,), 27: (7,), 29: (9,)}


@dataclass(frozen=True, slots=True)
class Style:
    """How characters look: the codes of marks (bold 1, dim 2 ...), of the colour and of the background."""

    marks: frozenset[int] = frozenset()
    color: str = ""
    back: str = ""

    @property
    def codes(self) -> str:
        """The codes that give this style from any other; "" for the plain style."""
        codes = [*map(str, sorted(self.marks)), self.color, self.back]
        return ";".join(code for code in codes if code)


@dataclass(slots=True)
class _Line:
    """Cells of one line, and where the next character goes."""

    cells: list[tuple[str, Style]] = field(default_factory=list)
    at: int = 0

    def write(self, text: str, style: Style) -> None:
        self.cells[self.at : self.at + len(text)] = [(character, style) for character in text]
        self.at += len(text)

    def obey(self, control: str) -> None:
        if control == "\r":
            self.at = 0
        elif control == "\b":
            self.at = max(self.at - 1, 0)
        elif control in {"\x1b[K", "\x1b[0K"}:
            del self.cells[self.at :]
        elif control == "\x1b[2K":
            self.cells = [(" ", Style())] * self.at

    def text(self) -> str:
        parts = []
        style = Style()
        for character, wanted in self.cells[:MOST_CHARACTERS]:
            if wanted != style:
                parts.append(f"\x1b[{';'.join(filter(None, ('0', wanted.codes)))}m")
                style = wanted
            parts.append(character)
        parts.append("\x1b[0m" if style != Style() else "")
        return "".join(parts) + _rest(len(self.cells))


def shown(lines: Iterable[str]) -> Iterator[str]:
    """The lines as a terminal shows them; a colour goes on in the next line. Linear in the text."""
    style = Style()
    for line in lines:
        if style == Style() and not _SPECIAL.search(line):
            yield line[:MOST_CHARACTERS] + _rest(len(line))
            continue
        drawn = _Line()
        for control, text in _pieces(line[-_READ_CHARACTERS:]):
            if control.startswith("\x1b[") and control.endswith("m"):
                style = _styled(style, control[2:-1])
            drawn.obey(control)
            drawn.write(text, style)
        yield drawn.text()


def _pieces(line: str) -> Iterator[tuple[str, str]]:
    """Each control with the text after it; of a line written anew many times the last writings only."""
    written = line.rstrip("\r").rsplit("\r", _REWRITES)
    parts = _CONTROL.split("\r".join(written[-_REWRITES:]))
    yield "", parts[0]
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _rest(characters: int) -> str:
    left = characters - MOST_CHARACTERS
    return f" ... {count(left, 'character')} left out" if left > 0 else ""


def _styled(style: Style, codes: str) -> Style:
    numbers = [int(code) if code.isdecimal() else 0 for code in re.split("[;:]", codes)[:32]]
    at = 0
    while at < len(numbers):
        code = numbers[at]
        if code in {38, 48}:
            taken, color = _extended(numbers[at:])
            style = replace(style, color=color) if code == 38 else replace(style, back=color)
            at += taken
        else:
            style = _marked(style, code)
            at += 1
    return style


def _extended(numbers: Sequence[int]) -> tuple[int, str]:
    """A colour of 256 (`38;5;n`) or of red, green and blue (`38;2;r;g;b`): how many codes it takes, and its text."""
    taken = {5: 3, 2: 5}.get(numbers[1] if len(numbers) > 1 else 0, len(numbers))
    color = numbers[:taken]
    complete = len(color) == taken and max(color[1:], default=256) <= 255
    return taken, ";".join(map(str, color)) if complete else ""


def _marked(style: Style, code: int) -> Style:
    if code == 0:
        return Style()
    if code in {1, 2, 3, 4, 7, 9}:
        return replace(style, marks=style.marks | {code})
    if code in _ENDED_BY:
        return replace(style, marks=style.marks.difference(_ENDED_BY[code]))
    if 30 <= code <= 37 or 90 <= code <= 97 or code == 39:
        return replace(style, color="" if code == 39 else str(code))
    if 40 <= code <= 47 or 100 <= code <= 107 or code == 49:
        return replace(style, back="" if code == 49 else str(code))
    return style
