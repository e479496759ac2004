"""Values that can be written out in the script."""

from __future__ import annotations

import math
from collections.abc import Mapping

_LONGEST = 2_000


def is_literal_value(value: object) -> bool:
    """True for a plain, short value whose `repr` means the same everywhere."""
    return _is_plain(value) and len(repr(value)) <= _LONGEST


def _is_plain(value: object) -> bool:
    if value is None or value is Ellipsis or type(value) in {bool, int, str, bytes}:
        return True
    if type(value) is float:
        return math.isfinite(value)
    if type(value) in {list, tuple, set}:
        return bool(value or type(value) is not set) and all(_is_plain(part) for part in value)  # type: ignore[attr-defined]  # one of three containers
    return type(value) is dict and all(_is_plain(key) and _is_plain(part) for key, part in value.items())


def arguments(values: Mapping[str, object]) -> str:
    """Keyword arguments as code."""
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
