"""Sizes in bytes as people write them: `80GB`, `16 GiB`, `2.5TB`."""

from __future__ import annotations

import re

from jupyter_autotrain.errors import PlanError

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_bytes(value: str | float) -> int:
    """Bytes of a size; a number is bytes already. 1 GB = 10^9, 1 GiB = 2^30 bytes.

    Raises:
        PlanError: When it is no size above zero.
    """
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    size = float(value) if is_number else 0.0
    if match:
        number, prefix, binary = match.groups()
        size = float(number) * (1024 if binary else 1000) ** _POWERS[prefix.lower()]
    if not 1 <= size < 2**62:
        raise PlanError(f"Cannot read the size {value!r}.", "A size above zero, such as 80GB or 16GiB.", "Write it so.")
    return int(size)
