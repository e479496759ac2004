"""Fields that the server always writes, empty where nobody has set them: those of statuses that clients rely on."""

from __future__ import annotations

from typing import Any

from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.schemas import Schemas

_ZERO: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


def fill_zero_values(schemas: Schemas, schema: Json, value: Any) -> None:
    """Set required texts, numbers and flags that are not there, in place."""
    schema = schemas.resolved(schema)
    if isinstance(value, list):
        for item in value:
            fill_zero_values(schemas, schema.get("items", {}), item)
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        kind = known.get(name, {}).get("type")
        if value.get(name) is None and kind in _ZERO and "format" not in known[name]:
            value[name] = _ZERO[kind]
    for name, item in value.items():
        if name in known:
            fill_zero_values(schemas, known[name], item)
