"""Quantities as Kubernetes writes them: `500m` CPUs, `16Gi` of memory."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_FACTORS: Final = {
    "": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    "k": Decimal("1e3"), "M": Decimal("1e6"), "G": Decimal("1e9"), "T": Decimal("1e12"), "P": Decimal("1e15"),
    "E": Decimal("1e18"), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
# Of `1E` and `1E3` the first is a suffix, the second an exponent.
_QUANTITY: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")


def parse_quantity(value: object) -> Decimal:
    """Return the number that a quantity means; its unit is that of its resource: CPUs, bytes, devices.

    The grammar is that of `resource.Quantity` of Kubernetes' API: a signed decimal number, then a binary suffix (Ki to
    Ei), a decimal one (n to E) or a decimal exponent (`e3`, `E-2`).

    Raises:
        ValueError: It is no quantity.
    """
    text = str(value).strip()
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no quantity such as 500m, 16Gi or 24581692Ki")
    amount, exponent, suffix = found.groups()
    return Decimal(amount).scaleb(int(exponent)) if exponent else Decimal(amount) * _FACTORS[suffix or ""]
