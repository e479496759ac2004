"""Completions of the header of a cell: keys, values, distributions, flags. Pure functions of the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product

from jupyter_autotrain.core.text_format import cut
from jupyter_autotrain.header.aliases import FLAGS, Flag, flag_of
from jupyter_autotrain.header.distributions import PARAMETERS
from jupyter_autotrain.header.document import LIMIT_BYTES, dotted
from jupyter_autotrain.header.help import (
    backend_keys,
    backend_values,
    described_keys,
    distribution_form,
    field_of,
    options_of,
)
from jupyter_autotrain.header.schema import Header
from jupyter_autotrain.header.value_faults import keys_of

MAGIC = "%%autotrain"
_KEY_LINE = re.compile(r"(\s*)(?:- )?([^\W\d]\w*)\s*:(.*)")
_HEADER_LINE = re.compile(r"\s*(?:[^\W\d]\w*\s*:(?:\s.*)?|-\s.*|#.*|[}\]].*|)")
_CLOSED = re.compile(r"\[[^\[\]{}]*\]|\{[^\[\]{}]*\}")
_LONGEST_TITLE = 50
_DEEPEST = 8  # brackets in brackets
_REPORT = re.compile(r"\breport\s*\(([^()]*)")
_KEYWORD = re.compile(r"\b(\w+)\s*=(?!=)")
_CLAUSE = re.compile(r"[.:;,(]\s|[.:;,]$")
_LITERAL = re.compile(r"^([^\W\d]\w*)\s*(?::[^=\n]*)?=\s*(?:[-+\d'\"]|True|False)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Completions:
    """The texts that fit between `start` and the cursor.

    Attributes:
        matches: The texts, best first.
        descriptions: What those mean that are described, by text.
        start: Where in the cell the replaced text begins.
        sure: False when the cursor may also be in code, so that other completions fit too.
    """

    matches: tuple[str, ...] = ()
    start: int = 0
    sure: bool = True
    descriptions: Mapping[str, str] = field(default_factory=dict)

    def title(self, text: str, otherwise: str = "") -> str:
        """Return the first clause of what a text means, for a narrow column."""
        return cut(_CLAUSE.split(self.descriptions.get(text, ""))[0], _LONGEST_TITLE) or otherwise


@dataclass(frozen=True, slots=True)
class _CompletionInput:
    text: str
    backends: Sequence[str]
    schema: type[Header]


def completions(text: str, cursor: int, backends: Sequence[str] = (), schema: type[Header] = Header) -> Completions:
    """Complete at a cursor.

    Args:
        text: The whole cell, beginning with `%%autotrain`.
        cursor: Offset of the cursor in it, in characters.
        backends: Names of the backends that can be used.
        schema: The keys that there are.
    """
    if not text.startswith(MAGIC) or cursor > LIMIT_BYTES:
        return Completions((), cursor)
    before = text[:cursor]
    cell = _CompletionInput(text, backends, schema)
    if "\n" not in before:
        return _on_line(before, cursor, cell)
    rows = before.split("\n")[1:]
    commented = rows[-1].lstrip().startswith("#|")
    sure = commented or _ends_below(text, cursor)
    if not _is_above_the_end(rows, is_sure=sure):
        return Completions((), cursor)
    plain = [re.sub(r"^#\| ?", "", row) for row in rows]
    word, matches = _in_header(plain, cell)
    return _fitting(word, matches, cursor, sure=sure or _has_begun(plain, schema))


def _is_above_the_end(rows: Sequence[str], *, is_sure: bool) -> bool:
    """Tell whether the rows up to the cursor can be a header that has not ended."""
    if any(map(_is_rule, rows[1:-1])):
        return False
    return is_sure or (not _is_rule(rows[0]) and all(map(_HEADER_LINE.fullmatch, rows[:-1])))


def _is_rule(row: str) -> bool:
    return row.rstrip() == "---"


def _has_begun(rows: Sequence[str], schema: type[Header]) -> bool:
    """Return True when a row begins with a key of the header; such variables are not annotated at the top of a cell."""
    keys = keys_of((), schema)
    return any((match := _KEY_LINE.match(row)) and match[2] in keys for row in rows)


def _ends_below(text: str, cursor: int) -> bool:
    """Return True when a `---` below the cursor ends the header, and none above does."""
    above = text[:cursor].split("\n")[1:-1]
    below = text[cursor:].split("\n")[1:]
    front = bool(above) and _is_rule(above[0])
    return sum(map(_is_rule, above)) == int(front) and any(map(_is_rule, below))


def _fitting(word: str, described: Mapping[str, str], cursor: int, *, sure: bool = True) -> Completions:
    matches = tuple(match for match in described if match.startswith(word) and match != word)
    texts = {match: described[match] for match in matches if described[match]}
    return Completions(matches, cursor - len(word), sure, texts)


def _on_line(before: str, cursor: int, cell: _CompletionInput) -> Completions:
    *given, word = before[len(MAGIC) :].split(" ")
    if not given:
        return Completions((), cursor)
    filled = [*filter(None, given)]
    flag = flag_of(filled[-1]) if filled else None
    if flag is not None and flag.takes_value:
        return _fitting(word, _values(dotted(flag.path), cell), cursor)
    unused: dict[str, str] = {}
    if word.startswith("-") or not word:
        for flag in FLAGS:
            unused |= dict.fromkeys(flag.spellings, _flag_text(flag, cell.schema))
    for used in given:
        unused.pop(used, None)
    return _fitting(word, unused, cursor)


def _flag_text(flag: Flag, schema: type[Header]) -> str:
    """Return what a flag means: what the key means that it sets."""
    return flag.text or str(field_of(dotted(flag.path), schema).description)


def _in_header(rows: Sequence[str], cell: _CompletionInput) -> tuple[str, Mapping[str, str]]:
    """Return the word before the cursor, and what may replace it, each with what it means."""
    row = rows[-1]
    path = _path_above(rows)
    match = _KEY_LINE.fullmatch(row)
    tail = row
    if match:
        path, tail = [*path, match[2]], match[3].lstrip()
    path, tail, opened = _into_brackets(path, tail)
    word = _last_word(tail, ".-")
    if match and not opened:
        return _value_at(path, tail, cell)
    if ":" in tail and opened == "{":
        key, _, value = tail.partition(":")
        return _value_at([*path, key.strip()], value.lstrip(), cell)
    if opened == "[" or (not match and tail.lstrip().startswith("- ")):
        return word, _values(".".join(path), cell)
    if path[:1] == ["backend"]:
        return word, _as_keys(backend_keys(path, rows, cell.schema))
    return word, _keys(path, cell)


def _path_above(rows: Sequence[str]) -> list[str]:
    """Return the keys that enclose the last row, by indentation."""
    indent = len(rows[-1]) - len(rows[-1].lstrip())
    indent += rows[-1].lstrip().startswith("- ")  # an item may stand below its key without an indent
    path: list[str] = []
    for row in reversed(rows[:-1]):
        match = _KEY_LINE.fullmatch(row)
        if match and len(match[1]) < indent:
            path.insert(0, match[2])
            indent = len(match[1])
    return path


def _into_brackets(path: list[str], tail: str) -> tuple[list[str], str, str]:
    """Follow `{` and `[` that are still open: the path inside, the text of the last item, the last bracket."""
    tail = _without_closed(tail)
    opened = re.findall(r"[{}\[\]]", tail)
    if not opened or not set(opened) <= {"{", "["}:
        return path, tail, ""
    *heads, last = re.split(r"[{\[]", tail)
    keys = [_last_word(head.rstrip()[:-1].rstrip()) for head in heads if head.rstrip().endswith(":")]
    return [*path, *filter(None, keys)], re.split(r",\s*", last)[-1], opened[-1]


def _without_closed(text: str) -> str:
    """Return the text without brackets that are closed again."""
    for _ in range(_DEEPEST):
        shorter = _CLOSED.sub("", text)
        if shorter == text:
            break
        text = shorter
    return text


def _last_word(text: str, more: str = "") -> str:
    """Return the letters, digits, underscores and `more` that the text ends with."""
    start = len(text)
    while start and (text[start - 1].isalnum() or text[start - 1] == "_" or text[start - 1] in more):
        start -= 1
    return text[start:]


def _keys(path: list[str], cell: _CompletionInput) -> dict[str, str]:
    if path == ["search"]:
        return _as_keys(dict.fromkeys(_LITERAL.findall(cell.text), "A variable of the cell"))
    if path[:1] == ["search"]:
        distributions = {name: distribution_form(name) for name in PARAMETERS}
        return _as_keys({**distributions, **dict.fromkeys(("_type", "_value", "_name"), "As in NNI")})
    return _as_keys(described_keys(keys_of(path, cell.schema)))


def _as_keys(described: Mapping[str, str]) -> dict[str, str]:
    return {f"{name}: ": text for name, text in described.items()}


def _undescribed(texts: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(texts, "")


def _value_at(path: list[str], tail: str, cell: _CompletionInput) -> tuple[str, Mapping[str, str]]:
    key = ".".join(path)
    if path == ["objective"]:
        return tail, _values(key, cell)
    return _last_word(tail, ".-"), _values(key, cell)


def _values(key: str, cell: _CompletionInput) -> dict[str, str]:
    if key.partition(".")[0] == "backend":
        return _undescribed(backend_values(key, cell.backends, cell.schema))
    if key == "objective":
        texts = ["maximize ", "minimize "]
        for goal, metric in product(("maximize", "minimize"), _metrics(cell.text)):
            texts += [f"{goal} {metric}", f"{goal} {goal[:3]}({metric})", f"{goal} mean({metric}, last=5)"]
        return _undescribed(texts)
    if key.startswith("search."):
        return {f"{name}(": distribution_form(name) for name in PARAMETERS}
    return _undescribed(options_of(key, cell.schema))


def _metrics(text: str) -> list[str]:
    """Return the names that the cell reports."""
    names = chain.from_iterable(map(_KEYWORD.findall, _REPORT.findall(text)))
    return [name for name in dict.fromkeys(names) if name != "step"]
