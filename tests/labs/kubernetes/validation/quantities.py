"""Amounts of resources, such as 500m and 2Gi."""

from __future__ import annotations

import re
from decimal import Decimal

_QUANTITY = re.compile(r"^([+-]?[0-9]*\.?[0-9]+)(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?$")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount(text: str | float) -> Decimal:
    """Return the number that a quantity stands for.

    Raises:
        ValueError: It is none.
    """
    found = _QUANTITY.match(str(text))
    if not found:
        raise ValueError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    number = Decimal(found[1])
    suffix = found[2] or ""
    if suffix in _BINARY:
        return number * Decimal(1024) ** (_BINARY.index(suffix) + 1)
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix])
    return number.scaleb(int(suffix[1:])) if suffix else number
