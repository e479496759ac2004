"""Sizes in bytes: read as people write them (`80GB`, `16 GiB`), and written for people to read."""

from __future__ import annotations

import math
import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_PREFIXES = ("", "k", "M", "G", "T")
_LARGEST_BYTES = 2**62


def parse_bytes(value: object, *, smallest_bare: float = 0) -> int:
    """Return the bytes of a size; a number is bytes already. 1 GB = 10^9, 1 GiB = 2^30 bytes.

    Args:
        value: A number with or without a unit.
        smallest_bare: A number below it needs a unit.

    Raises:
        ValueError: When it is no size above zero; its text is what to do, where that can be said.
    """
    text = value.strip() if isinstance(value, str) else _number_text(value)
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("")
    number, prefix, binary = match.groups()
    if text == number and float(number) < smallest_bare:
        raise ValueError(f"write the unit, as in {number}GB")
    size = float(number) * (1024 if binary else 1000) ** _POWERS[prefix.lower()]
    if not 1 <= size <= _LARGEST_BYTES:
        raise ValueError("")
    return int(size)


def _number_text(value: object) -> str:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return ""
    return f"{value:f}" if math.isfinite(value) else ""


def format_bytes(size_bytes: float, *, binary: bool = False, up: bool = False) -> str:
    """Format bytes in three digits: `12 B`, `3.4 kB`, `56 MB`.

    Args:
        size_bytes: The size.
        binary: Units of 1024 (`80 GiB`), as the memory of devices is sold; else of 1000.
        up: Round up, for a size that the reader has to provide.
    """
    base = 1024 if binary else 1000
    value = float(size_bytes)
    power = 0
    while abs(_rounded(value, up=up)) >= base and power < len(_PREFIXES) - 1:
        value /= base
        power += 1
    prefix = _PREFIXES[power]
    unit = f"{prefix.upper()}iB" if binary and prefix else f"{prefix}B"
    return f"{_rounded(value, up=up):.12g} {unit}"


def _rounded(value: float, *, up: bool) -> float:
    """Round the value to three digits, or to as many as precede its decimal point."""
    digits_before = len(str(int(abs(value))))
    scale = 10 ** max(0, 3 - digits_before)
    scaled = value * scale
    whole = math.ceil(scaled) if up else round(scaled)
    return float(whole / scale)


def format_memory(size_bytes: float, *, up: bool = False) -> str:
    """Format the memory of a device, in binary units as devices are sold: `80 GiB`."""
    return format_bytes(size_bytes, binary=True, up=up)
