"""Where the header of a cell ends and its code begins.

```
%%autotrain [NAME] [flags]        %%autotrain [NAME] [flags]
key: value                        #| key: value
---                               Python
Python
```
The first line that is just `---` ends a header, unless it is part of Python: in a cell that as a whole is Python, or
inside a string that began above. A cell with neither `---` nor leading `#|` lines is all code.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.header.document import LIMIT_BYTES, Lines
from jupyter_autotrain.header.faults import Fault, SourceLocation

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
    first = next((i for i, row in enumerate(rows) if row.strip()), len(rows))
    if first < len(rows) and rows[first].startswith("#|"):
        return _split_comments(rows, first)
    front = first < len(rows) and _RULE.fullmatch(rows[first]) is not None
    start = first + 1 if front else 0
    end = next((i for i in range(start, len(rows)) if rows[i].startswith("---") and _RULE.fullmatch(rows[i])), None)
    if end is None and front:
        end = first
    if end is None or _is_part_of_python("\n".join(rows), "\n".join(rows[start:end])):
        return Parts((), "\n".join(rows), FIRST_LINE, ended=False)
    header = [(i + FIRST_LINE, rows[i]) for i in range(start, end)]
    return Parts(header, "\n".join(rows[end + 1 :]), end + 1 + FIRST_LINE)


def _split_comments(rows: list[str], first: int) -> Parts:
    end = next((i for i in range(first, len(rows)) if not rows[i].startswith("#|")), len(rows))
    texts = [(i + FIRST_LINE, _uncommented(rows[i])) for i in range(first, end)]
    header = [(number, "" if _RULE.fullmatch(text) else text) for number, text in texts]
    return Parts(header, "\n".join(rows[end:]), end + FIRST_LINE)


def _uncommented(row: str) -> str:
    text = row[2:]
    return text[1:] if text.startswith(" ") else text


def missing_rule(parts: Parts, keys: list[str]) -> Fault | None:
    """The fault of a header that no `---` ends: not Python, and it begins with a key of the schema.

    `trials: 3` is Python, the annotation of a variable, but is never meant so.
    """
    rows = parts.code.split("\n")
    first = next((i for i, row in enumerate(rows) if row.strip() and not row.startswith("#")), None)
    match = _KEY.match(f"{rows[first]}\n") if first is not None else None
    if parts.ended or first is None or match is None or not closest_match(match[1], keys):
        return None
    if _is_python(parts.code) and not (match[1] in keys and _annotates_with_a_value(rows[first])):
        return None
    location = SourceLocation(first + parts.code_line)
    return Fault(
        f"{match[1]!r} looks like a header", "expected a line `---` below it", "add it above the code", location
    )


def _annotates_with_a_value(row: str) -> bool:
    """True for `name: 3`, `name: "text"`, `name: {a: 1}` and the like, which are no types."""
    try:
        statement = ast.parse(row.strip()).body[0]
    except (SyntaxError, ValueError):
        return False
    if not isinstance(statement, ast.AnnAssign) or statement.value is not None:
        return False
    return isinstance(statement.annotation, ast.Constant | ast.Dict | ast.List | ast.Set)


def _is_part_of_python(cell: str, above: str) -> bool:
    """True when the rule below a text belongs to code; in a long text, only a string of many lines can hold it."""
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
    """True when a triple-quoted string begins in the text and does not end in it."""
    position = 0
    while match := _QUOTES.search(text, position):
        position = match.end()
        if match.group() in {"'''", '"""'}:
            end = text.find(match.group(), position)
            if end < 0:
                return True
            position = end + 3
    return False
