"""Quantities as Kubernetes writes them: `500m` CPUs, `16Gi` of memory."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

_FACTORS: Final = {
    "": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    "k": Decimal("1e3"), "M": Decimal("1e6"), "G": Decimal("1e9"), "T": Decimal("1e12"), "P": Decimal("1e15"),
    "E": Decimal("1e18"), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip


def parse_quantity(value: object) -> Decimal:
    """The number that a quantity means; its unit is that of its resource: CPUs, bytes, devices.

    Raises:
        ValueError: It is no quantity.
    """
    text = str(value).strip()
    suffix = text[len(text.rstrip("numkMGTPEi")) :]
    try:
        return Decimal(text[: len(text) - len(suffix)]) * _FACTORS[suffix]
    except (InvalidOperation, KeyError) as error:
        raise ValueError(f"{text!r} is no quantity such as 500m or 16Gi") from error
