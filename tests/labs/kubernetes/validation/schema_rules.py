"""Values against a schema, in the words of the server: of custom kinds all, of built-in ones what is required."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.labs.kubernetes.objects.errors import Cause
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.schemas import Schemas

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "object": (dict,),
    "array": (list,),
}  # fmt: skip


class SchemaRules:
    """Faults of a value by its schema."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def fill(self, schema: Json, value: Any) -> None:
        """Set the defaults of a custom kind's schema."""
        schema = self._schemas.resolved(schema)
        if isinstance(value, list):
            for item in value:
                self.fill(schema.get("items", {}), item)
        if not isinstance(value, dict):
            return
        for name, part in schema.get("properties", {}).items():
            if "default" in part and name not in value:
                value[name] = json.loads(json.dumps(part["default"]))
            if name in value:
                self.fill(part, value[name])
        if isinstance(schema.get("additionalProperties"), dict):
            for item in value.values():
                self.fill(schema["additionalProperties"], item)

    def causes(self, schema: Json, value: Any, path: str = "") -> Iterator[Cause]:
        """Everything that is wrong."""
        schema = self._schemas.resolved(schema)
        if value is None:
            return
        expected = schema.get("type", "")
        if expected and not _is_of_type(expected, value):
            found = json.dumps(value)
            told = f"Invalid value: {found}: {path} in body must be of type {expected}: {found}"
            yield Cause(path, told, "FieldValueTypeInvalid")
            return
        yield from _limits(schema, value, path)
        if isinstance(value, dict):
            yield from self._object(schema, value, path)
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.causes(schema.get("items", {}), item, f"{path}[{index}]")

    def _object(self, schema: Json, value: Json, path: str) -> Iterator[Cause]:
        for name in schema.get("required", ()):
            if value.get(name) is None:
                yield Cause(_joined(path, name), "Required value", "FieldValueRequired")
        known = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for name, item in value.items():
            part = known.get(name, others if isinstance(others, dict) else {})
            yield from self.causes(part, item, _joined(path, name))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_of_type(expected: str, value: Any) -> bool:
    if isinstance(value, bool):
        return expected == "boolean"
    return isinstance(value, _TYPES[expected])


def _limits(schema: Json, value: Any, path: str) -> Iterator[Cause]:
    told = json.dumps(value)
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(json.dumps(item) for item in schema["enum"])
        yield Cause(path, f"Unsupported value: {told}: supported values: {supported}", "FieldValueNotSupported")
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        yield Cause(
            path, f"Invalid value: {told}: {path} in body should be greater than or equal to {schema['minimum']}"
        )
    if isinstance(value, int | float) and value > schema.get("maximum", value):
        yield Cause(path, f"Invalid value: {told}: {path} in body should be less than or equal to {schema['maximum']}")
    if isinstance(value, str):
        yield from _text_limits(schema, value, path)
    if isinstance(value, list) and len(value) < schema.get("minItems", 0):
        yield Cause(
            path, f"Invalid value: {len(value)}: {path} in body should have at least {schema['minItems']} items"
        )


def _text_limits(schema: Json, value: str, path: str) -> Iterator[Cause]:
    told = json.dumps(value)
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield Cause(path, f"Invalid value: {told}: {path} in body should match '{schema['pattern']}'")
    if len(value) > schema.get("maxLength", len(value)):
        longest = schema["maxLength"]
        yield Cause(path, f"Too long: may not be more than {longest} bytes", "FieldValueTooLong")
    if len(value) < schema.get("minLength", 0):
        yield Cause(path, f"Invalid value: {told}: {path} in body should be at least {schema['minLength']} chars long")
