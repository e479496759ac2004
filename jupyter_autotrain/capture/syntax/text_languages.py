"""The names in formats, templates, queries and formulas: small languages inside texts."""

from __future__ import annotations

import io
import keyword
import re
import string
import tokenize
from collections.abc import Iterator

_PERCENT = re.compile(r"%\((\w+)\)")
_AT = re.compile(r"@\s*([^\W\d]\w*)")


def percent_names(text: str) -> list[str]:
    """The names in a text for `%`, such as `"%(name)s"`."""
    return _PERCENT.findall(text)


def at_names(text: str) -> list[str]:
    """The names in a query of pandas that are marked as the caller's: `"a > @limit"`."""
    return _AT.findall(text)


def format_fields(text: str) -> Iterator[str]:
    """The names in a text for `str.format`; attributes and items of them are left out."""
    try:
        for _, name, spec, _ in string.Formatter().parse(text):
            yield from [re.split(r"[.\[]", name)[0]] if name else []
            yield from format_fields(spec) if spec else []
    except ValueError:
        return  # it fails in the notebook too


def template_placeholders(text: str) -> Iterator[str]:
    """The names in a text for `string.Template`."""
    for match in string.Template.pattern.finditer(text):
        if name := match["named"] or match["braced"]:
            yield name


def identifiers(text: str) -> Iterator[str]:
    """The names in an expression; attributes and the names of keyword arguments are none."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text.strip()).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        is_attribute = before is not None and before.string == "."
        is_keyword = after is not None and after.string == "="
        if token.type == tokenize.NAME and not (is_attribute or is_keyword or keyword.iskeyword(token.string)):
            yield token.string
