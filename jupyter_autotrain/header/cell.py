"""From a cell to its header and its code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jupyter_autotrain.header.aliases import canonical
from jupyter_autotrain.header.checking import check, checked
from jupyter_autotrain.header.completions import MAGIC
from jupyter_autotrain.header.config_sources import HeaderContext, merge_sources
from jupyter_autotrain.header.document import WHOLE_CHARACTERS, Document, half_character
from jupyter_autotrain.header.faults import Fault, KeyPath, SourceLocation, combined_error, expected_instead, in_order
from jupyter_autotrain.header.flags import Flags, read_line
from jupyter_autotrain.header.help import default_of, known_keys, written
from jupyter_autotrain.header.schema import Header
from jupyter_autotrain.header.secrets import DEEPEST, in_comments
from jupyter_autotrain.header.splitting import missing_rule, split
from jupyter_autotrain.header.yaml_parts import load, too_long


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
        context: The folder, the environment and the usable backends.

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
        context: The folder, the environment and the usable backends.
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
        where = ".".join(map(str, path)) or "a key"
        yield Fault(f"{where}: {half}", *WHOLE_CHARACTERS)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a key is set to, as one would write it, and where that comes from (`default`, a file's line ...)."""

    key: str
    value: str
    origin: str

    def __str__(self) -> str:
        return f"{self.key} = {self.value} ({self.origin})"


def explain(key: str, context: HeaderContext, line: str = "", cell: str = "") -> Setting:
    """What a key is set to, and where that comes from.

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
