"""What may be typed next in the header of a cell: keys, values, distributions, flags. Pure functions of the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.core.text_format import cut
from jupyter_autotrain.header import backend_completions
from jupyter_autotrain.header.distributions import PARAMETERS
from jupyter_autotrain.header.document import LIMIT_BYTES
from jupyter_autotrain.header.flags import FLAGS, Flag
from jupyter_autotrain.header.help import distribution_form, field_of, options_of
from jupyter_autotrain.header.model_faults import keys_of
from jupyter_autotrain.header.schema import Header

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
    """What fits between `start` and the cursor.

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
        """The first clause of what a text means, for a narrow column."""
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
    if not sure and not all(_HEADER_LINE.fullmatch(row) for row in rows[:-1]):
        return Completions((), cursor)
    if any(row.rstrip() == "---" for row in rows[1:-1]) or (rows[0].rstrip() == "---" and not sure):
        return Completions((), cursor)
    plain = [re.sub(r"^#\| ?", "", row) for row in rows]
    word, matches = _in_header(plain, cell)
    return _fitting(word, matches, cursor, sure=sure or _has_begun(plain, schema))


def _has_begun(rows: Sequence[str], schema: type[Header]) -> bool:
    """True when a row begins with a key of the header; such variables are not annotated at the top of a cell."""
    keys = keys_of((), schema)
    return any((match := _KEY_LINE.match(row)) and match[2] in keys for row in rows)


def _ends_below(text: str, cursor: int) -> bool:
    """True when a `---` below the cursor ends the header, and none above does."""
    above = text[:cursor].split("\n")[1:-1]
    below = text[cursor:].split("\n")[1:]
    ruled = [row for row in above if row.rstrip() == "---"]
    front = bool(above) and above[0].rstrip() == "---"
    return len(ruled) == int(front) and any(row.rstrip() == "---" for row in below)


def _fitting(word: str, described: Mapping[str, str], cursor: int, *, sure: bool = True) -> Completions:
    matches = tuple(match for match in described if match.startswith(word) and match != word)
    texts = {match: described[match] for match in matches if described[match]}
    return Completions(matches, cursor - len(word), sure, texts)


def _on_line(before: str, cursor: int, cell: _CompletionInput) -> Completions:
    words = before[len(MAGIC) :].split(" ")
    if len(words) < 2:
        return Completions((), cursor)
    word = words[-1]
    last = next((w for w in reversed(words[:-1]) if w), "")
    flag = next((flag for flag in FLAGS if last in flag.spellings and flag.takes_value), None)
    if flag is not None:
        key = ".".join(str(part) for part in flag.path)
        return _fitting(word, _values(key, cell), cursor)
    flags = FLAGS if word.startswith("-") or not word else ()
    described = {spelling: _flag_text(flag, cell.schema) for flag in flags for spelling in flag.spellings}
    unused = described.keys() - set(words[:-1])
    return _fitting(word, {text: described[text] for text in described if text in unused}, cursor)


def _flag_text(flag: Flag, schema: type[Header]) -> str:
    """What a flag means: what the key means that it sets."""
    return flag.text or str(field_of(".".join(map(str, flag.path)), schema).description)


def _in_header(rows: Sequence[str], cell: _CompletionInput) -> tuple[str, Mapping[str, str]]:
    """The word before the cursor, and what may replace it, each with what it means."""
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
        return word, _as_keys(backend_completions.keys(path, rows, cell.schema))
    return word, _keys(path, cell)


def _path_above(rows: Sequence[str]) -> list[str]:
    """The keys that enclose the last row, by indentation."""
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
    """The text without brackets that are closed again."""
    for _ in range(_DEEPEST):
        shorter = _CLOSED.sub("", text)
        if shorter == text:
            break
        text = shorter
    return text


def _last_word(text: str, more: str = "") -> str:
    """The letters, digits, underscores and `more` that the text ends with."""
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
    return _as_keys({name: str(key.description or "") for name, key in keys_of(path, cell.schema).items()})


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
        return _undescribed(backend_completions.values(key, cell.backends, cell.schema))
    if key == "objective":
        goals = ("maximize", "minimize")
        metrics = _metrics(cell.text)
        forms = [f"{goal} {form}" for goal in goals for metric in metrics for form in _summaries(goal, metric)]
        return _undescribed([*(f"{goal} " for goal in goals), *forms])
    if key.startswith("search."):
        return {f"{name}(": distribution_form(name) for name in PARAMETERS}
    return _undescribed(options_of(key, cell.schema))


def _summaries(goal: str, metric: str) -> tuple[str, ...]:
    return metric, f"{goal[:3]}({metric})", f"mean({metric}, last=5)"


def _metrics(text: str) -> list[str]:
    """The names that the cell reports."""
    names = [name for call in _REPORT.findall(text) for name in _KEYWORD.findall(call)]
    return [name for name in dict.fromkeys(names) if name != "step"]
