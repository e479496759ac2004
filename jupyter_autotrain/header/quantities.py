"""Sizes and times as people write them: `8GB`, `16GiB..`, `30m`, `1h30m`, `90`."""

from __future__ import annotations

import math
import re

from jupyter_autotrain.core.sizes import parse_bytes
from jupyter_autotrain.header.faults import UnfitError

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
