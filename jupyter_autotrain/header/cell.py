"""From a cell to its header and its code.

A header stands above a line that is just `---`, or in the leading lines that begin with `#|`:

    %%autotrain [NAME] [flags]        %%autotrain [NAME] [flags]
    key: value                        #| key: value
    ---                               Python
    Python

The first such `---` ends a header, unless it is part of Python: in a cell that as a whole is Python, or inside a string
that began above. A cell with neither `---` nor leading `#|` lines is all code.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.header.aliases import Flags, canonical, read_line
from jupyter_autotrain.header.checking import check, checked
from jupyter_autotrain.header.completions import MAGIC
from jupyter_autotrain.header.config_sources import HeaderContext, merge_sources
from jupyter_autotrain.header.document import (
    LIMIT_BYTES,
    WHOLE_CHARACTERS,
    Document,
    Fault,
    KeyPath,
    Lines,
    SourceLocation,
    combined_error,
    dotted,
    expected_instead,
    half_character,
    in_order,
)
from jupyter_autotrain.header.help import default_of, known_keys, written
from jupyter_autotrain.header.schema import Header
from jupyter_autotrain.header.value_faults import DEEPEST, in_comments
from jupyter_autotrain.header.yaml_reader import load, too_long

FIRST_LINE = 2  # the cell's line 1 is the magic itself
_RULE = re.compile(r"---\s*")
_KEY = re.compile(r"([A-Za-z_]\w*)\s*:\s")
# What a line leaves open ends with the line: trying it again from the next quote would be quadratic.
_QUOTES = re.compile(r"'''|\"\"\"|'(?:\\.|[^'\\\n])*(?:'|\\?$)|\"(?:\\.|[^\"\\\n])*(?:\"|\\?$)|#[^\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Parts:
    """A cell body taken apart.

    Attributes:
        header: The header's lines with their numbers in the cell, without `#|`.
        code: The Python below.
        code_line: The number of the code's first line in the cell.
        ended: False when no line says where a header ends: all is code.
    """

    header: Lines
    code: str
    code_line: int
    ended: bool = True


def split(cell: str) -> Parts:
    """Take a cell body (without the magic line) apart; never raises. Linear, but for one parse of the code."""
    rows = [row.rstrip("\r") for row in cell.split("\n")]
    code = "\n".join(rows)
    first = _find(rows, str.strip)
    opening = rows[first] if first < len(rows) else ""
    if opening.startswith("#|"):
        return _split_comments(rows, first)
    start = first + 1 if _is_rule(opening) else 0
    end = _find(rows, _is_rule, start)
    if end == len(rows) and _is_rule(opening):
        end = first
    if end == len(rows) or _is_part_of_python(code, "\n".join(rows[start:end])):
        return Parts((), code, FIRST_LINE, ended=False)
    header = list(enumerate(rows[start:end], start + FIRST_LINE))
    return Parts(header, "\n".join(rows[end + 1 :]), end + 1 + FIRST_LINE)


def _find(rows: Sequence[str], is_wanted: Callable[[str], object], start: int = 0) -> int:
    """Return the number of the first wanted row from `start` on; the number of rows where there is none."""
    return next((i for i in range(start, len(rows)) if is_wanted(rows[i])), len(rows))


def _is_rule(row: str) -> bool:
    return row.startswith("---") and _RULE.fullmatch(row) is not None


def _is_code(row: str) -> bool:
    return bool(row.strip()) and not row.startswith("#")


def _is_uncommented(row: str) -> bool:
    return not row.startswith("#|")


def _split_comments(rows: list[str], first: int) -> Parts:
    end = _find(rows, _is_uncommented, first)
    texts = map(_uncommented, rows[first:end])
    header = [(number, "" if _RULE.fullmatch(text) else text) for number, text in enumerate(texts, first + FIRST_LINE)]
    return Parts(header, "\n".join(rows[end:]), end + FIRST_LINE)


def _uncommented(row: str) -> str:
    text = row[2:]
    return text[1:] if text.startswith(" ") else text


def missing_rule(parts: Parts, keys: list[str]) -> Fault | None:
    """Return the fault of a header that no `---` ends: not Python, and it begins with a key of the schema.

    `trials: 3` is Python, the annotation of a variable, but is never meant so.
    """
    rows = parts.code.split("\n")
    first = _find(rows, _is_code)
    match = _KEY.match(f"{rows[first]}\n") if first < len(rows) else None
    if parts.ended or match is None or not closest_match(match[1], keys):
        return None
    if _is_python(parts.code) and not (match[1] in keys and _annotates_with_a_value(rows[first])):
        return None
    location = SourceLocation(first + parts.code_line)
    return Fault(
        f"{match[1]!r} looks like a header", "expected a line `---` below it", "add it above the code", location
    )


def _annotates_with_a_value(row: str) -> bool:
    """Return True for `name: 3`, `name: "text"`, `name: {a: 1}` and the like, which are no types."""
    try:
        statement = ast.parse(row.strip()).body[0]
    except (SyntaxError, ValueError):
        return False
    if not isinstance(statement, ast.AnnAssign) or statement.value is not None:
        return False
    return isinstance(statement.annotation, ast.Constant | ast.Dict | ast.List | ast.Set)


def _is_part_of_python(cell: str, above: str) -> bool:
    """Get True when the rule below a text belongs to code; in a long text, only a string of many lines can hold it."""
    has_strings = "'''" in above or '"""' in above
    if len(above) > LIMIT_BYTES and not has_strings:
        return False
    return _is_python(cell) or (has_strings and _opens_string(above))


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _opens_string(text: str) -> bool:
    """Return True when a triple-quoted string begins in the text and does not end in it."""
    position = 0
    while match := _QUOTES.search(text, position):
        position = match.end()
        if match.group() in {"'''", '"""'}:
            end = text.find(match.group(), position)
            if end < 0:
                return True
            position = end + 3
    return False


@dataclass(frozen=True, slots=True)
class ParsedCell:
    """A cell taken apart and checked; `code_line` is the cell's line on which the code begins."""

    header: Header
    code: str
    code_line: int
    flags: Flags


def parse_cell(line: str, cell: str, context: HeaderContext) -> ParsedCell:
    """Read a magic line and the cell below it.

    Args:
        line: What follows `%%autotrain` on line 1.
        cell: The rest, from line 2 on.
        context: The folder, the variables and the usable backends.

    Raises:
        HeaderError: With all faults of line, header and settings files.
    """
    parsed, faults = _read(line, cell, context)
    if faults or parsed is None:
        raise combined_error(faults)
    return parsed


def cell_faults(text: str, context: HeaderContext) -> list[Fault]:
    """All faults that running a cell would name, in the order of their lines.

    Args:
        text: The whole cell, beginning with `%%autotrain`.
        context: The folder, the variables and the usable backends.
    """
    first, _, rest = text.partition("\n")
    return in_order(_read(first.removeprefix(MAGIC), rest, context)[1])


def _read(line: str, cell: str, context: HeaderContext) -> tuple[ParsedCell | None, list[Fault]]:
    parts = split(cell)
    if fault := too_long(parts.header):
        return None, [fault]
    flags, from_line = read_line(line)
    from_header = load(parts.header)
    if fault := missing_rule(parts, list(context.schema.model_fields)):
        from_header.faults.append(fault)
    from_header.faults += in_comments(parts.header)
    settings = merge_sources(context, from_header, from_line, flags.file)
    profiles, faults = context.profiles()
    settings.faults += faults
    header, faults = checked(settings, context.schema, profiles, is_cell=True, folder=context.cwd)
    if header is None:
        return None, faults
    text = "\n".join(text for _, text in parts.header)
    return ParsedCell(header.written_as(f"{line}\n{text}".strip()), parts.code, parts.code_line, flags), faults


def from_mapping(settings: Mapping[str, object], context: HeaderContext | None = None) -> Header:
    """Check settings given as Python values; keys set to None are left out.

    Args:
        settings: The header's keys, as in `submit(train, objective="maximize val_acc")`.
        context: Given: settings files count too, below `settings`.

    Raises:
        HeaderError: With all faults.
    """
    document = Document({str(key): value for key, value in settings.items() if value is not None})
    if faults := list(_half_characters(document.data, ())):
        raise combined_error(faults)
    if context is None:
        return check(canonical(document))
    profiles, faults = context.profiles()
    settings_and_files = merge_sources(context, document, Document())
    settings_and_files.faults += faults
    return check(settings_and_files, context.schema, profiles, folder=context.cwd)


def _half_characters(value: object, path: KeyPath) -> Iterator[Fault]:
    """Yield a fault for each text that holds half a character; where it stands is told, not the text."""
    if len(path) > DEEPEST:
        return  # a value given in Python may hold itself
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _half_characters(str(key), path)
            yield from _half_characters(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _half_characters(item, (*path, index))
    elif isinstance(value, str) and (half := half_character(value)):
        where = dotted(path) or "a key"
        yield Fault(f"{where}: {half}", *WHOLE_CHARACTERS)


@dataclass(frozen=True, slots=True)
class Setting:
    """The value of a key, as one would write it, and where that comes from (`default`, a file's line ...)."""

    key: str
    value: str
    origin: str

    def __str__(self) -> str:
        return f"{self.key} = {self.value} ({self.origin})"


def explain(key: str, context: HeaderContext, line: str = "", cell: str = "") -> Setting:
    """Return what a key is set to, and where that comes from.

    Raises:
        HeaderError: When there is no such key, or the settings are faulty.
    """
    known = known_keys(context.schema)
    if key not in known:
        raise combined_error([Fault(f"unknown key {key!r}", expected_instead(key, known), "see %autotrain help")])
    flags, from_line = read_line(line)
    settings = merge_sources(context, load(split(cell).header), from_line, flags.file)
    path = tuple(key.split("."))
    value: object = settings.data
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return Setting(key, default_of(key, context.schema), "default")
    return Setting(key, written(value), _origin(settings.location(path)))


def _origin(location: SourceLocation) -> str:
    """Where a setting was written, for people."""
    if location.source:
        return str(location)
    return f"the cell's {location}" if location.line > 1 else "the magic line"
