"""Parts of objects as a server sends them: what is not there, or not of the expected kind, is empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_autotrain.core.json import JsonObject, JsonValue


def value(found: JsonObject, *path: str) -> JsonValue:
    """What lies below a path of keys; None where it ends early."""
    here: JsonValue = found
    for key in path:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def part(found: JsonObject, *path: str) -> JsonObject:
    """The object below a path."""
    inner = value(found, *path)
    return inner if isinstance(inner, Mapping) else {}


def items(found: JsonObject, *path: str) -> list[JsonObject]:
    """The objects of the array below a path."""
    inner = value(found, *path)
    if not isinstance(inner, Sequence) or isinstance(inner, str):
        return []
    return [item for item in inner if isinstance(item, Mapping)]


def text(found: JsonObject, *path: str) -> str:
    """The text below a path."""
    inner = value(found, *path)
    return inner if isinstance(inner, str) else ""


def number(found: JsonObject, *path: str, default: int = 0) -> int:
    """The whole number below a path."""
    inner = value(found, *path)
    return inner if isinstance(inner, int) and not isinstance(inner, bool) else default


def condition(found: JsonObject, kind: str) -> JsonObject:
    """The condition of a type that holds now (its status is "True"); empty when there is none."""
    for one in items(found, "status", "conditions"):
        if one.get("type") == kind and one.get("status") == "True":
            return one
    return {}
