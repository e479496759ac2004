"""Fields of untrusted JSON, with a value of the expected type in any case."""

from __future__ import annotations

from collections.abc import Mapping


def mapping(value: object) -> dict[str, object]:
    """Return the value if it is a JSON object, else an empty one."""
    return {str(k): v for k, v in value.items()} if isinstance(value, Mapping) else {}


def strings(value: object) -> list[str]:
    """Return the value if it is a JSON array, as texts, else an empty one."""
    return list(map(str, value)) if isinstance(value, (list, tuple)) else []


def sequence(value: object) -> list[object]:
    """Return the value if it is a JSON array, else an empty one."""
    return list(value) if isinstance(value, (list, tuple)) else []


def integer(value: object, default: int) -> int:
    """Return the value if it is an int, else the default."""
    return value if isinstance(value, int) else default
