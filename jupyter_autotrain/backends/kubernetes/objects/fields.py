"""Parts of objects as a server sends them: what is not there, or not of the expected kind, is empty."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue


def value(found: JsonObject, *path: str) -> JsonValue:
    """Return what lies below a path of keys; None where it ends early."""
    here: JsonValue = found
    for key in path:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def part(found: JsonObject, *path: str) -> JsonObject:
    """Return the object below a path."""
    inner = value(found, *path)
    return inner if isinstance(inner, Mapping) else {}


def items(found: JsonObject, *path: str) -> list[JsonObject]:
    """Return the objects of the array below a path."""
    inner = value(found, *path)
    if not isinstance(inner, Sequence) or isinstance(inner, str):
        return []
    return [item for item in inner if isinstance(item, Mapping)]


def text(found: JsonObject, *path: str) -> str:
    """Return the text below a path."""
    inner = value(found, *path)
    return inner if isinstance(inner, str) else ""


def number(found: JsonObject, *path: str, default: int = 0) -> int:
    """Return the whole number below a path."""
    inner = value(found, *path)
    return inner if isinstance(inner, int) and not isinstance(inner, bool) else default


def condition(found: JsonObject, kind: str) -> JsonObject:
    """Return the condition of a type that holds now (its status is "True"); empty when there is none."""
    for one in items(found, "status", "conditions"):
        if one.get("type") == kind and one.get("status") == "True":
            return one
    return {}


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
        raise ValueError(f"{text!r} is not a quantity such as 500m, 16Gi or 24581692Ki")
    amount, exponent, suffix = found.groups()
    return Decimal(amount).scaleb(int(exponent)) if exponent else Decimal(amount) * _FACTORS[suffix or ""]
