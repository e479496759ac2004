"""Fields that the schema of a kind does not know, and values of a wrong type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.schemas import Schemas

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "object": (dict,),
    "array": (list,),
}  # fmt: skip
_GO_NAMES = {
    "integer": "int32",
    "boolean": "bool",
    "string": "string",
    "object": "map[string]string",
    "array": "[]string",
}


@dataclass(slots=True)
class Decoded:
    """An object as the server reads it.

    Attributes:
        unknown: The paths of the fields that were dropped, such as spec.template.spec.containers[0].comand.
        wrong: What Go says to values of another type.
    """

    value: Json = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class FieldReader:
    """Reads objects by the schemas that are served."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def read(self, schema: Json, value: Json) -> Decoded:
        """Return an object without what is unknown, and what is unknown."""
        decoded = Decoded()
        decoded.value = self._value(schema, value, "", decoded)
        return decoded

    def _value(self, schema: Json, value: Any, path: str, decoded: Decoded) -> Any:
        schema = self._schemas.resolved(schema)
        if value is None:
            return None
        if not self._is_of_type(schema, value):
            decoded.wrong.append(_go_error(schema["type"], value, path))
            return value
        if isinstance(value, dict):
            return self._object(schema, value, path, decoded)
        if isinstance(value, list) and "items" in schema:
            items = enumerate(value)
            return [self._value(schema["items"], item, f"{path}[{index}]", decoded) for index, item in items]
        return value

    @staticmethod
    def _is_of_type(schema: Json, value: Any) -> bool:
        expected = schema.get("type")
        if expected is None:
            return True
        if isinstance(value, bool):
            return bool(expected == "boolean")
        if expected == "integer" and isinstance(value, float):
            return value.is_integer()
        return isinstance(value, _TYPES[str(expected)])

    def _object(self, schema: Json, value: Json, path: str, decoded: Decoded) -> Json:
        known = schema.get("properties", {})
        others = schema.get("additionalProperties")
        found: Json = {}
        for name, item in value.items():
            place = f"{path}.{name}" if path else name
            if name in known:
                found[name] = self._value(known[name], item, place, decoded)
            elif isinstance(others, dict):
                found[name] = self._value(others, item, place, decoded)
            elif others is True or schema.get("x-kubernetes-preserve-unknown-fields"):
                found[name] = item
            else:
                decoded.unknown.append(place)
        return found


def _go_error(expected: str, value: Any, path: str) -> str:
    found = {str: "string", bool: "bool", dict: "object", list: "array"}.get(type(value), "number")
    kind = _GO_NAMES.get(expected, expected)
    return f"json: cannot unmarshal {found} into Go struct field {path.split('.', maxsplit=1)[0]}.{path} of type {kind}"
