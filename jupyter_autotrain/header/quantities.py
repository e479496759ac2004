"""Values as people write them: one of several words, sizes and times such as `8GB`, `16GiB..`, `30m`, `1h30m`, `90`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from jupyter_autotrain.agent.sizes import parse_bytes
from jupyter_autotrain.header.document import UnfitError, expected_instead

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:ms|[smhd])\s*)+", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhd])", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(bit|b|B)(?:/s|ps)")
_POWERS = ("", "k", "M", "G", "T")
_LONGEST_CHARS = 64
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,12})?")
_SMALLEST_BARE_BYTES = 1_000_000
_LONGEST_S = 366 * 86400.0

SIZE_FORM = "a size such as 8GB, 512MiB or 16GB.. (at least)"
RATE_FORM = "a rate such as 100Gbit/s or 12.5GB/s"
DURATION_FORM = "a time such as 90 (seconds), 30m or 1h30m"


def parse_size(value: str | float) -> int:
    """Bytes of a size; `16GB..` (at least 16 GB) is its lower end. 1 GB = 10^9, 1 GiB = 2^30 bytes.

    Raises:
        UnfitError: When it is no size, or a bare number too small to be meant in bytes.
    """
    text = _short(value, SIZE_FORM).removesuffix("..").strip()
    try:
        return parse_bytes(text, smallest_bare=_SMALLEST_BARE_BYTES)
    except ValueError as error:
        raise UnfitError(SIZE_FORM, str(error)) from None


def parse_rate(value: str | float) -> float:
    """Bytes per second of a rate; `b` is a bit and `B` a byte, as networks are sold.

    Raises:
        UnfitError: It is no rate, or none above 0.
    """
    match = _RATE.fullmatch(_short(value, RATE_FORM))
    if match is None or not float(match[1]):
        raise UnfitError(RATE_FORM)
    number, power, unit = match.groups()
    bytes_per_unit = 1 if unit == "B" else 1 / 8
    return float(number) * 1000.0 ** _POWERS.index(power) * bytes_per_unit


def parse_duration(value: str | float) -> float:
    """Seconds of a time. `12:30:00` is refused: readers of YAML disagree on what it is.

    Raises:
        UnfitError: When it is no time, or not between 0 (excluded) and a year.
    """
    text = _short(value, DURATION_FORM)
    if ":" in text:
        raise UnfitError(DURATION_FORM, "write 12h30m for 12:30:00")
    if _NUMBER.fullmatch(text):
        seconds = float(text)
    elif _DURATION.fullmatch(text):
        seconds = math.fsum(float(number) * _SECONDS[unit.lower()] for number, unit in _PART.findall(text))
    else:
        raise UnfitError(DURATION_FORM)
    if not 0 < seconds <= _LONGEST_S:
        raise UnfitError(f"{DURATION_FORM}, above 0 and at most a year")
    return seconds


def _short(value: str | float, form: str) -> str:
    try:
        text = str(value).strip()
    except ValueError:  # an integer of thousands of digits
        raise UnfitError(form) from None
    if len(text) > _LONGEST_CHARS:
        raise UnfitError(form)
    return text


@dataclass(frozen=True)
class OneOf:
    """Annotates text that must be one of `names`; `others` are further spellings of them, in lower case.

    Text that the regular expression `pattern` matches as a whole is taken as it is.
    """

    names: tuple[str, ...]
    others: tuple[tuple[str, str], ...] = ()
    pattern: str = ""

    def read(self, value: object) -> str:
        """Return the name that is meant.

        Raises:
            UnfitError: When none is.
        """
        known = {name: name for name in self.names} | dict(self.others)
        word = str(value) if isinstance(value, str | int) else ""
        if self.pattern and re.fullmatch(self.pattern, word):
            return word
        if word.lower() not in known:
            raise UnfitError(expected_instead(word, self.names))
        return known[word.lower()]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> dict[str, object]:
        return {"type": "string", "enum": list(self.names)}


@dataclass(frozen=True)
class ShortForm:
    """Annotates a section that one text may stand for: the value of its key `key`, one of `texts`."""

    key: str
    texts: OneOf

    def read(self, value: object) -> object:
        """Return the section that is meant.

        Raises:
            UnfitError: When the text is none of those known.
        """
        return {self.key: self.texts.read(value)} if isinstance(value, str) else value

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {"anyOf": [{"type": "string", "enum": list(self.texts.names)}, handler(schema)]}
